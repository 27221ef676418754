/** Terminals as tabs: live, with one keyboard that the person takes and gives back. */

import { signal, useSignal } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { quoted } from "./composer";
import { call, ServerError } from "./connection";
import { duration, shortPath } from "./format";
import { copy, CopyButton } from "./markdown";
import type { Terminal } from "./protocol";
import { screens, type Screen } from "./screens";
import { attempt, tell, terminals, welcome } from "./store";

/** The tab that was chosen, by task. */
const chosen = signal<ReadonlyMap<string, string>>(new Map());

export function choose(task: string, terminal: string): void {
  chosen.value = new Map(chosen.value).set(task, terminal);
}

export function terminalsOf(task: string | null): Terminal[] {
  const all = [...terminals.value.values()].sort((one, other) => one.number - other.number);
  return task === null ? all : all.filter((terminal) => terminal.last_task === task);
}

async function openTerminal(task: string | null): Promise<void> {
  try {
    const made = await call("open", task ? { task } : {});
    choose(task ?? "", String(made["terminal"]));
  } catch (error) {
    if (error instanceof ServerError) tell(error.what, error.hint);
  }
}

/** `alone`: nothing else of the page is in view. */
export function Terminals({ task, alone = false }: { task: string | null; alone?: boolean }): VNode {
  const list = terminalsOf(task);
  const wanted = chosen.value.get(task ?? "");
  const busiest = list.find((terminal) => terminal.awaits) ?? list.findLast((terminal) => terminal.busy) ?? list.at(-1);
  const current = list.find((terminal) => terminal.id === wanted) ?? busiest;

  const keys = (event: KeyboardEvent): void => {
    const at = list.findIndex((terminal) => terminal.id === current?.id);
    const to = event.key === "ArrowRight" ? at + 1 : event.key === "ArrowLeft" ? at - 1 : null;
    if (to === null || !list.length) return;
    event.preventDefault();
    const next = list[(to + list.length) % list.length]!;
    choose(task ?? "", next.id);
    document.getElementById(`tab-${next.id}`)?.focus();
  };

  return (
    <section class="terminals" aria-label="Terminals" {...(alone ? { role: "main" } : {})}>
      {alone ? <h1 class="hidden-text">Terminals</h1> : null}
      <div class="tabs-bar">
        <div class="tabs" role="tablist" aria-label="Terminals" onKeyDown={keys}>
          {list.map((terminal) => (
            <button
              key={terminal.id}
              id={`tab-${terminal.id}`}
              class="tab"
              type="button"
              role="tab"
              aria-selected={terminal.id === current?.id}
              aria-controls={`panel-${terminal.id}`}
              tabIndex={terminal.id === current?.id ? 0 : -1}
              title={terminal.command ?? terminal.cwd}
              onClick={() => choose(task ?? "", terminal.id)}
            >
              <span class={`dot ${terminal.awaits ? "waiting" : terminal.busy ? "running" : "idle"}`} aria-hidden="true" />
              {terminal.name || (task ? terminal.id.split("@")[0] : terminal.id)}
              <span class="faint clip">{terminal.busy && terminal.command ? terminal.command.split("\n")[0] : ""}</span>
            </button>
          ))}
        </div>
        <button class="quiet icon" type="button" title="New terminal" aria-label="New terminal" onClick={() => void openTerminal(task)}>
          +
        </button>
      </div>
      {current ? (
        <TerminalPanel key={current.id} terminal={current} />
      ) : (
        <div class="blank">
          <p>No terminal is open{task ? " in this task" : ""}.</p>
          <p class="faint">The agent opens one when it needs a shell. You can open one of your own, too.</p>
          <button type="button" onClick={() => void openTerminal(task)}>
            Open a terminal
          </button>
        </div>
      )}
    </section>
  );
}

function TerminalPanel({ terminal }: { terminal: Terminal }): VNode {
  const place = useRef<HTMLDivElement>(null);
  const field = useRef<HTMLInputElement>(null);
  const searching = useSignal(false);
  const needle = useSignal("");
  const screen = screens.of(terminal);

  useLayoutEffect(() => {
    if (!place.current) return;
    screen.show(place.current);
    return () => screen.hide();
  }, [screen]);
  useEffect(() => {
    if (searching.value) field.current?.focus();
  }, [searching.value]);

  const search = (): void => {
    searching.value = true;
    field.current?.focus();
  };
  const holding = screen.holding.value;
  const other = terminal.holder && terminal.holder !== welcome.value?.page;
  const failed = (): void => tell("The browser does not let the page copy.");
  const toggle = async (): Promise<void> => {
    try {
      if (holding) await screen.give();
      else await screen.take();
    } catch (error) {
      if (error instanceof ServerError) tell(error.what, error.hint);
    }
  };
  const selection = screen.selection.value;
  const count = screen.matches.value;
  const lines = selection.trim().split("\n").length;
  const state = holding
    ? "You have the keyboard; the agent waits."
    : selection.trim()
      ? `${lines === 1 ? "One line" : `${lines} lines`} selected.`
    : other
      ? "Somebody else has the keyboard."
      : terminal.busy
        ? terminal.by_person
          ? "Your command runs."
          : terminal.awaits
            ? "The agent's command waits for input."
            : "The agent's command runs."
        : terminal.last
          ? `Exit code ${terminal.last.exit_code ?? "unknown"} after ${duration(terminal.last.duration)}.`
          : "At the prompt.";
  const keys = (event: KeyboardEvent): void => {
    const ours = event.ctrlKey && event.shiftKey;
    if (ours && event.code === "KeyF") search();
    else if (event.ctrlKey && event.code === "KeyC" && (ours || !holding)) void (screen.selected() && copy(screen.selected()).catch(failed));
    else if (holding) return;
    else if (screen.lostBy.value && typed(event)) screen.unsent.value = true; // meant for the line that was lost: it takes no keyboard
    else if (event.key === "Enter") void toggle();
    else if (!screen.read(event)) return;
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    <div class="terminal-panel" role="tabpanel" id={`panel-${terminal.id}`} aria-labelledby={`tab-${terminal.id}`}>
      <div class="terminal-bar">
        <span class="mono faint clip path" title={terminal.cwd}>
          {shortPath(terminal.cwd)}
        </span>
        <span class="grow faint clip" role="status">
          {state}
        </span>
        {selection.trim() ? (
          <>
            <CopyButton text={() => screen.selected()} />
            <button class="quiet" type="button" onClick={() => (quoted.value = { terminal: terminal.id, text: selection })}>
              Ask about it
            </button>
          </>
        ) : null}
        <button class="quiet" type="button" aria-pressed={searching.value} onClick={() => (searching.value = !searching.value)}>
          Search
        </button>
        {terminal.busy ? (
          <button class="quiet" type="button" title="Ctrl-C" onClick={() => void attempt("interrupt", { terminal: terminal.id })}>
            Interrupt
          </button>
        ) : null}
        <button type="button" class={holding ? "primary" : ""} onClick={() => void toggle()}>
          {holding ? "Give it back" : "Take the keyboard"}
        </button>
      </div>
      {searching.value ? (
        <form
          class="terminal-search"
          role="search"
          onSubmit={(event) => {
            event.preventDefault();
            screen.find(needle.value, true);
          }}
          onKeyDown={(event) => {
            if (event.key !== "Escape") return;
            searching.value = false;
            screen.find("");
            screen.focus();
          }}
        >
          <input
            ref={field}
            type="search"
            aria-label="Search in this terminal"
            value={needle.value}
            onInput={(event) => {
              needle.value = event.currentTarget.value;
              screen.find(needle.value, true);
            }}
          />
          <span class="faint" role="status">
            {needle.value ? (count?.count ? `${count.index} of ${count.count}` : "none") : ""}
          </span>
          <button class="quiet" type="submit" aria-label="Previous">
            ↑
          </button>
          <button class="quiet" type="button" aria-label="Next" onClick={() => screen.find(needle.value)}>
            ↓
          </button>
        </form>
      ) : null}
      <Lost screen={screen} />
      {terminal.awaits?.wants === "secret" ? <SecretField terminal={terminal} /> : null}
      <div
        class={holding ? "terminal-place holding" : "terminal-place"}
        ref={place}
        onKeyDownCapture={keys}
      />
      {holding ? <PhoneKeys screen={screen} /> : null}
    </div>
  );
}

const typed = (event: KeyboardEvent): boolean => event.key === "Enter" || (event.key.length === 1 && !event.ctrlKey && !event.altKey && !event.metaKey);

/** The keyboard is gone, and nobody gave it back. */
function Lost({ screen }: { screen: Screen }): VNode {
  const by = screen.lostBy.value;
  const how = by === "connection" ? "The connection was cut. You no longer have the keyboard." : "Somebody else took the keyboard.";
  return (
    <div role="alert">
      {by ? (
        <p class="keyboard-lost">
          {how} {screen.unsent.value ? "Your last keys may be lost. Look at the line before you type on." : ""}
        </p>
      ) : null}
    </div>
  );
}

/** A secret goes straight to the terminal: neither the model nor the log sees it. */
export function SecretField({ terminal }: { terminal: Terminal }): VNode {
  const text = useSignal("");
  return (
    <form
      class="secret"
      autocomplete="off"
      onSubmit={(event) => {
        event.preventDefault();
        const data = text.value;
        text.value = "";
        void attempt("secret", { terminal: terminal.id, data });
      }}
    >
      <label>
        <span class="dot waiting" aria-hidden="true" />
        {terminal.name || terminal.id} asks for a secret: <code>{terminal.awaits?.prompt.trim() || "(no prompt)"}</code>
        <input type="password" autocomplete="off" spellcheck={false} value={text.value} onInput={(event) => (text.value = event.currentTarget.value)} />
      </label>
      <button type="submit">Send to the terminal</button>
      <span class="faint">The model does not see it.</span>
    </form>
  );
}

const KEYS: readonly (readonly [string, string])[] = [
  ["Esc", "\x1b"],
  ["Tab", "\t"],
  ["^C", "\x03"],
  ["^D", "\x04"],
  ["↑", "\x1b[A"],
  ["↓", "\x1b[B"],
  ["←", "\x1b[D"],
  ["→", "\x1b[C"],
];

function PhoneKeys({ screen }: { screen: Screen }): VNode {
  const line = useSignal("");
  return (
    <form
      class="phone-keys"
      onSubmit={(event) => {
        event.preventDefault();
        screen.type(`${line.value}\r`);
        line.value = "";
      }}
    >
      <input type="text" aria-label="A line for the terminal" placeholder="Type a line" autocapitalize="off" autocomplete="off" spellcheck={false} value={line.value} onInput={(event) => (line.value = event.currentTarget.value)} />
      <button type="submit">Send</button>
      <span class="key-row">
        {KEYS.map(([name, data]) => (
          <button key={name} type="button" onClick={() => screen.type(data)}>
            {name}
          </button>
        ))}
      </span>
    </form>
  );
}
