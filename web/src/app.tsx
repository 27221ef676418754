/** The page: a rail, the list of tasks, what is looked at, and the terminals beside it. */

import { useSignal } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Composer } from "./composer";
import { folder, link, now, refusal } from "./connection";
import { Film } from "./film";
import { sentence, shortPath } from "./format";
import { inline } from "./markdown";
import { QuestionCard } from "./question";
import { go, route, toTask } from "./routes";
import { Settings } from "./settings";
import { announcement, dismiss, pressing, tasks, troubles, welcome } from "./store";
import { narrow, TaskList } from "./tasklist";
import { stateOf } from "./tasks";
import { TaskView } from "./taskview";
import { Terminals } from "./terminals";
import { Usage } from "./usage";

const SHORTCUTS: readonly (readonly [string, string])[] = [
  ["n", "new task"],
  ["/", "search tasks"],
  ["c", "write a message"],
  ["q", "go to the open question"],
  ["j, k", "next, previous task"],
  ["t", "show or hide the terminals"],
  ["F6", "next part of the page, also out of a terminal"],
  ["y, n, s, a, e, t", "answer a question that has the focus, or try its command"],
  ["Enter", "in a terminal: take the keyboard"],
  ["↑, ↓, PgUp, PgDn", "in a terminal: scroll; with Shift, select lines"],
  ["Ctrl-Shift-C, -F", "in a terminal: copy, search"],
  ["Space", "in a replay: play, pause"],
  ["←, →", "in a replay: one second; with Shift, ten"],
  [", . < >", "in a replay: previous, next event; slower, faster"],
  ["?", "this list"],
];

export function App(): VNode {
  const now_ = route.value;
  const wide = useSignal(localStorage.getItem("tarmac.terminals") !== "hidden");
  const help = useSignal(false);
  const part = useSignal<"main" | "terminals" | "tasks">("main");
  const count = pressing.value.length;
  const toggle = (): void => {
    wide.value = !wide.value;
    part.value = wide.value ? "terminals" : "main";
    localStorage.setItem("tarmac.terminals", wide.value ? "shown" : "hidden");
  };
  useShortcuts(() => (help.value = true), toggle);
  useEffect(() => {
    const open = (): void => void (help.value = true);
    document.addEventListener("tarmac:help", open);
    return () => document.removeEventListener("tarmac:help", open);
  }, []);
  useEffect(() => void (part.value = "main"), [now_]);
  const task = now_.page === "task" ? now_.task : null;
  const split = now_.page === "task" && !now_.replay && wide.value;

  if (link.value === "locked") return <Locked />;
  if (link.value === "asking") return <Asking />;
  return (
    <div class={`app page-${now_.page} ${split ? "split" : ""} part-${part.value}`}>
      <header class="top">
        <a
          class="skip"
          href="#content"
          onClick={(event) => {
            event.preventDefault();
            document.querySelector<HTMLElement>("#composer, .page, .tab[aria-selected=true]")?.focus();
          }}
        >
          Skip the list
        </a>
        <a class="brand" href="#/" aria-label="Tarmac, all tasks">
          <svg viewBox="0 0 32 32" width="20" height="20" aria-hidden="true">
            <path d="M16 4v5M16 13v6M16 23v5" stroke="var(--amber)" stroke-width="3" stroke-linecap="round" />
            <path d="M7 28 12 4M25 28 20 4" stroke="currentColor" stroke-width="2.200" stroke-linecap="round" />
          </svg>
          <span>Tarmac</span>
        </a>
        <span class="faint mono clip path hide-narrow" title={welcome.value?.workspace}>
          {welcome.value ? shortPath(welcome.value.workspace) : ""}
        </span>
        <span class="grow" />
        {link.value === "online" ? null : (
          <span class="offline" role="status">
            <span class="dot waiting" aria-hidden="true" />
            {link.value === "connecting" ? "Connecting…" : "Offline. Trying again…"}
            {link.value === "offline" ? (
              <button class="quiet" type="button" onClick={now}>
                Now
              </button>
            ) : null}
          </span>
        )}
        <nav class="rail" aria-label="Pages">
          <RailLink to="#/" page="home" name={count ? `Tasks (${count})` : "Tasks"} alert={count > 0} />
          <RailLink to="#/terminals" page="terminals" name="Terminals" />
          <RailLink to="#/usage" page="usage" name="Usage" />
          <RailLink to="#/settings" page="settings" name="Settings" />
          <button class="quiet" type="button" aria-label="Keyboard shortcuts" title="Keyboard shortcuts (?)" onClick={() => (help.value = true)}>
            ?
          </button>
        </nav>
      </header>
      <div class="body" id="content">
        <TaskList />
        {now_.page === "home" ? <Home /> : null}
        {now_.page === "task" && now_.replay ? <Film key={now_.task} task={now_.task} /> : null}
        {now_.page === "task" && !now_.replay ? <TaskView key={now_.task} id={now_.task} terminalsShown={wide.value} toggleTerminals={toggle} /> : null}
        {split ? <Terminals key={`terminals-${task}`} task={task} alone={narrow.value && part.value === "terminals"} /> : null}
        {now_.page === "terminals" ? (
          <main class="all-terminals" aria-label="All terminals">
            <h1 class="hidden-text">All terminals</h1>
            <Terminals task={null} />
          </main>
        ) : null}
        {now_.page === "settings" ? <Settings /> : null}
        {now_.page === "usage" ? <Usage /> : null}
      </div>
      {now_.page === "task" && !now_.replay ? (
        <nav class="parts" aria-label="Parts of the task">
          <button type="button" aria-pressed={part.value === "main"} onClick={() => (part.value = "main")}>
            Timeline
          </button>
          <button
            type="button"
            aria-pressed={part.value === "terminals"}
            onClick={() => {
              if (!wide.value) toggle();
              part.value = "terminals";
            }}
          >
            Terminals
          </button>
        </nav>
      ) : null}
      <div class="troubles" role="alert">
        {troubles.value.map((trouble) => (
          <div class="trouble" key={trouble.id}>
            <p>{sentence(trouble.what)}</p>
            {trouble.hint ? <p class="faint">{sentence(trouble.hint)}</p> : null}
            <button class="quiet" type="button" aria-label="Dismiss" onClick={() => dismiss(trouble.id)}>
              ✕
            </button>
          </div>
        ))}
      </div>
      <div class="hidden-text" role="status" aria-live="polite">
        {announcement.value}
      </div>
      {help.value ? <Help close={() => (help.value = false)} /> : null}
    </div>
  );
}

function RailLink({ to, page, name, alert = false }: { to: string; page: string; name: string; alert?: boolean }): VNode {
  return (
    <a class={alert ? "rail-link alert" : "rail-link"} href={to} aria-current={route.value.page === page ? "page" : undefined}>
      {name}
    </a>
  );
}

function Home(): VNode {
  const running = [...tasks.value.values()].filter((task) => stateOf(task) === "running");
  const waiting = pressing.value;
  return (
    <main class="home" aria-label="New task">
      <div class="home-inner">
        <h1>{waiting.length && !narrow.value ? "Waiting for you" : "What should be done?"}</h1>
        {waiting.map((question) => {
          const task = tasks.value.get(question.task);
          return (
            <div key={question.question} class="home-question">
              <a href={toTask(question.task)}>{task?.title ?? question.task}</a>
              <QuestionCard question={question} compact />
            </div>
          );
        })}
        <Composer task={null} />
        {running.length ? <p class="faint">{running.length === 1 ? "One task is" : `${running.length} tasks are`} running.</p> : null}
        {welcome.value && !welcome.value.model ? (
          <p class="notice">
            No model is chosen yet. End <code>tarmac web</code> and start it with <code>--model provider/name</code>, or set <code>model</code> in config.toml. <code>tarmac models</code> lists the models.
          </p>
        ) : null}
        <p class="faint home-hint">
          In <code class="path">{folder() || welcome.value?.workspace}</code>.<span class="hide-narrow"> <kbd>?</kbd> lists the keys.</span>
        </p>
      </div>
    </main>
  );
}

function Locked(): VNode {
  return (
    <main class="locked">
      <h1>{refusal.value ? sentence(refusal.value.what) : "Open a new address."}</h1>
      <p>{inline(refusal.value?.hint ? sentence(refusal.value.hint) : "This page needs a new address. Run `tarmac web` again, or press Enter where it runs.")}</p>
    </main>
  );
}

function Asking(): VNode {
  return (
    <main class="locked" aria-live="polite">
      <h1>Say yes where Tarmac runs.</h1>
      <p>
        The terminal of <code>tarmac web</code> asks whether this device may come in. Answer <kbd>y</kbd> there within a minute.
      </p>
    </main>
  );
}

function Help({ close }: { close: () => void }): VNode {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="help" aria-label="Keyboard shortcuts" onClose={close} onClick={(event) => event.target === dialog.current && dialog.current?.close()}>
      <h2>Keys</h2>
      <dl>
        {SHORTCUTS.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <button type="button" onClick={() => dialog.current?.close()}>
        Close
      </button>
    </dialog>
  );
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

/** The parts that F6 goes through, as they are on the page now. */
const PARTS = ["#search", ".timeline", ".question:not(.compact)", "#composer", ".tab[aria-selected=true]", ".xterm-helper-textarea"];

function nextPart(back: boolean): void {
  const parts = PARTS.map((part) => document.querySelector<HTMLElement>(part)).filter((part) => part !== null && part.offsetParent !== null) as HTMLElement[];
  const at = parts.findIndex((part) => part === document.activeElement || (part.matches(".question") && part.contains(document.activeElement)));
  parts[(at + (back ? parts.length - 1 : 1) + (at < 0 && back ? 1 : 0)) % parts.length]?.focus();
}

function useShortcuts(help: () => void, terminals: () => void): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if (event.key === "F6") {
        event.preventDefault();
        nextPart(event.shiftKey);
        return;
      }
      if (isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
      if ((event.target as HTMLElement).closest?.(".question")) return;
      const links = [...document.querySelectorAll<HTMLAnchorElement>("a.entry")];
      const at = links.findIndex((each) => each.getAttribute("aria-current") === "page");
      const keys: Record<string, () => void> = {
        "?": help,
        n: () => {
          go("#/");
          requestAnimationFrame(() => document.getElementById("composer")?.focus());
        },
        "/": () => document.getElementById("search")?.focus(),
        c: () => document.getElementById("composer")?.focus(),
        q: () => document.querySelector<HTMLElement>(".question:not(.compact), .question")?.focus(),
        t: terminals,
        j: () => links[Math.min(at + 1, links.length - 1)]?.click(),
        k: () => links[Math.max(at - 1, 0)]?.click(),
      };
      const act = keys[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  });
}
