/** Where the person writes: /commands and @files complete as in the terminal, pictures are pasted or dropped. */

import { signal, useSignal } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { call, folder, get, ServerError } from "./connection";
import { money, tokens } from "./format";
import type { Task } from "./protocol";
import { go, toTask } from "./routes";
import { attempt, announcement, tasks, tell, welcome } from "./store";

interface Offer {
  text: string;
  what: string;
}

interface Attached {
  media_type: string;
  base64: string;
  url: string;
}

interface Command {
  name: string;
  what: string;
  values?: string[];
}

const MOST_BYTES = 5_000_000;
const LEVEL_WORDS: Readonly<Record<string, string>> = {
  plan: "Only plan",
  ask: "Ask before changes",
  edits: "Edit files without asking",
  workspace: "Work in the workspace without asking",
  all: "Ask only about critical things",
};

/** What is quoted from a terminal, for the next message. */
export const quoted = signal<{ terminal: string; text: string } | null>(null);
/** What was written and not yet sent, by task. */
const drafts = new Map<string, string>();

export function Composer({ task }: { task: Task | null }): VNode {
  const key = task?.id ?? "";
  const area = useRef<HTMLTextAreaElement>(null);
  const file = useRef<HTMLInputElement>(null);
  const text = useSignal(drafts.get(key) ?? "");
  const offers = useSignal<Offer[]>([]);
  const chosen = useSignal(0);
  const pictures = useSignal<Attached[]>([]);
  const sending = useSignal(false);
  const level = useSignal("");
  const word = useRef({ from: 0, to: 0 });
  const asked = useRef(0);

  useEffect(() => {
    text.value = drafts.get(key) ?? "";
    offers.value = [];
  }, [key]);
  useEffect(() => {
    drafts.set(key, text.value);
    const element = area.current;
    if (!element) return;
    element.style.height = "auto";
    element.style.height = `${Math.min(element.scrollHeight, innerHeight * 0.4)}px`;
  }, [text.value, key]);

  const complete = async (): Promise<void> => {
    const element = area.current;
    const mine = ++asked.current;
    if (!element) return;
    const before = element.value.slice(0, element.selectionStart);
    const slash = /^\/([\w-]*)$/.exec(before);
    const value = /^\/([\w-]+) +(\S*)$/.exec(before);
    const at = /(?:^|\s)@([^\s@]*)$/.exec(before);
    try {
      let found: Offer[] = [];
      let place = { from: 0, to: before.length };
      const about = task ? `&task=${task.id}` : "";
      if (slash || value) {
        const { commands } = await get<{ commands: Command[] }>(`/api/commands?${about.slice(1)}`);
        if (slash) {
          found = commands.filter((each) => each.name.startsWith(slash[1]!)).map((each) => ({ text: `/${each.name} `, what: each.what }));
        } else if (value) {
          const values = commands.find((each) => each.name === value[1])?.values ?? [];
          found = values.filter((each) => each.startsWith(value[2]!)).map((each) => ({ text: each, what: "" }));
          place = { from: before.length - value[2]!.length, to: before.length };
        }
      } else if (at) {
        const { files } = await get<{ files: string[] }>(`/api/files?q=${encodeURIComponent(at[1]!)}${about}`);
        found = files.map((name) => ({ text: `@${name} `, what: "" }));
        place = { from: before.length - at[1]!.length - 1, to: before.length };
      }
      if (mine !== asked.current) return;
      word.current = place;
      offers.value = found.slice(0, 12);
      chosen.value = 0;
    } catch {
      if (mine === asked.current) offers.value = [];
    }
  };

  const accept = (offer: Offer): void => {
    const { from } = word.current;
    const to = Math.max(word.current.to, area.current?.selectionStart ?? 0); // typed since the offers came
    text.value = text.value.slice(0, from) + offer.text + text.value.slice(to);
    offers.value = [];
    const element = area.current;
    if (!element) return;
    element.value = text.value; // now: the next key may come before the next frame
    element.focus();
    element.setSelectionRange(from + offer.text.length, from + offer.text.length);
    if (offer.text.startsWith("/")) requestAnimationFrame(() => void complete());
  };

  const submit = async (): Promise<void> => {
    const quote = quoted.value;
    const words = text.value.trim();
    if ((!words && !pictures.value.length) || sending.value) return;
    sending.value = true;
    try {
      if (words.startsWith("/") && !quote && (await command(words, task))) {
        text.value = "";
        return;
      }
      const said = quote ? `${words}\n\nFrom terminal ${quote.terminal}:\n\`\`\`\n${quote.text}\n\`\`\`` : words;
      const images = pictures.value.map(({ media_type, base64 }) => ({ media_type, base64 }));
      if (task) await call("say", { task: task.id, text: said, images });
      else {
        const made = await call("create", { text: said, images, ...(level.value ? { level: level.value } : {}), ...(folder() ? { cwd: folder() } : {}) });
        go(toTask(String(made["task"])));
      }
      text.value = "";
      drafts.delete(key); // a new task has left this page
      pictures.value = [];
      quoted.value = null;
    } catch (error) {
      if (!(error instanceof ServerError)) throw error;
      tell(error.what, error.hint);
    } finally {
      sending.value = false;
    }
  };

  const attach = async (files: Iterable<File>): Promise<void> => {
    for (const each of files) {
      if (!each.type.startsWith("image/")) continue;
      if (each.size > MOST_BYTES) {
        tell(`${each.name} is too large: ${Math.round(each.size / 1e6)} MB.`, "A picture may have 5 MB.");
        continue;
      }
      const url = await new Promise<string>((resolve) => {
        const reader = new FileReader();
        reader.onload = () => resolve(String(reader.result));
        reader.readAsDataURL(each);
      });
      pictures.value = [...pictures.value, { media_type: each.type, base64: url.slice(url.indexOf(",") + 1), url }];
    }
  };

  const keydown = (event: KeyboardEvent): void => {
    const list = offers.value;
    if (list.length && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      chosen.value = (chosen.value + (event.key === "ArrowDown" ? 1 : list.length - 1)) % list.length;
    } else if (list.length && (event.key === "Tab" || (event.key === "Enter" && list[chosen.value]!.text.trim() !== text.value.trim()))) {
      accept(list[chosen.value]!);
    } else if (event.key === "Escape" && list.length) offers.value = [];
    else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) void submit();
    else return;
    event.preventDefault();
  };

  const running = task?.running ?? false;
  const levels = welcome.value?.levels ?? [];
  return (
    <div
      class="composer"
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        void attach(event.dataTransfer?.files ?? []);
      }}
    >
      {task?.queue.length ? (
        <ul class="queue" aria-label="Queued messages">
          {task.queue.map((message) => (
            <li key={message.message}>
              <span class="badge">queued</span> <span class="clip">{message.text}</span>
              <button class="quiet" type="button" aria-label={`Take back: ${message.text}`} onClick={() => void attempt("withdraw", { task: task.id, message: message.message })}>
                Take back
              </button>
            </li>
          ))}
        </ul>
      ) : null}
      {quoted.value ? (
        <div class="chip">
          <span class="clip">
            From {quoted.value.terminal}: {quoted.value.text.split("\n")[0]}
          </span>
          <button class="quiet" type="button" aria-label="Remove the quoted text" onClick={() => (quoted.value = null)}>
            ✕
          </button>
        </div>
      ) : null}
      {pictures.value.length ? (
        <div class="attached">
          {pictures.value.map((picture, at) => (
            <button key={picture.url} type="button" class="picture" aria-label="Remove this picture" onClick={() => (pictures.value = pictures.value.filter((_, other) => other !== at))}>
              <img src={picture.url} alt="" />
            </button>
          ))}
        </div>
      ) : null}
      <div class="field">
        {offers.value.length ? (
          <ul class="offers" id="offers" role="listbox" tabIndex={0} onMouseDown={(event) => event.preventDefault()} aria-label="Completions">
            {offers.value.map((offer, at) => (
              <li
                key={offer.text}
                id={`offer-${at}`}
                role="option"
                aria-selected={at === chosen.value}
                onMouseDown={(event) => {
                  event.preventDefault();
                  accept(offer);
                }}
              >
                <span class="mono">{offer.text.trim()}</span> <span class="faint clip">{offer.what}</span>
              </li>
            ))}
          </ul>
        ) : null}
        <textarea
          ref={area}
          id="composer"
          rows={1}
          value={text.value}
          aria-label={task ? "Message" : "New task"}
          aria-autocomplete="list"
          {...(offers.value.length ? { "aria-controls": "offers", "aria-activedescendant": `offer-${chosen.value}` } : {})}
          placeholder={task ? (running ? "Say something; it is queued until the model can read it" : "Go on with this task") : "Describe the task. / for commands, @ for files"}
          onInput={(event) => {
            text.value = event.currentTarget.value;
            void complete();
          }}
          onKeyDown={keydown}
          onBlur={() => (offers.value = [])}
          onPaste={(event) => {
            const files = [...(event.clipboardData?.files ?? [])];
            if (files.length) void attach(files);
          }}
        />
        <div class="field-bar">
          <button class="quiet icon" type="button" aria-label="Attach a picture" onClick={() => file.current?.click()}>
            <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
              <path d="M13 7.500 8.200 12.300a3 3 0 0 1-4.300-4.300L9 3a2 2 0 0 1 2.900 2.900L7 10.700a1 1 0 0 1-1.400-1.400l4.300-4.300" fill="none" stroke="currentColor" stroke-width="1.400" stroke-linecap="round" />
            </svg>
          </button>
          <input ref={file} type="file" accept="image/*" multiple hidden onChange={(event) => {
              void attach([...(event.currentTarget.files ?? [])]);
              event.currentTarget.value = ""; // the same picture can be chosen again
            }} />
          <span class="mono faint clip hide-tight">{task?.model || (welcome.value ? welcome.value.model || "no model" : "")}</span>
          <span class="faint hide-tight">{task?.mode ?? welcome.value?.mode}</span>
          <span class="grow" />
          {levels.length ? (
            <label class="level">
              <span class="hidden-text">What runs without asking</span>
              <select
                value={task ? task.level : level.value || welcome.value?.level}
                onChange={(event) => {
                  const value = event.currentTarget.value;
                  if (task) void attempt("level", { task: task.id, level: value });
                  else level.value = value;
                }}
              >
                {levels.map((each) => (
                  <option key={each} value={each}>
                    {LEVEL_WORDS[each] ?? each}
                  </option>
                ))}
              </select>
            </label>
          ) : null}
          {running ? (
            <button type="button" onClick={() => task && void attempt("cancel", { task: task.id })}>
              Stop
            </button>
          ) : null}
          <button class="primary" type="button" disabled={sending.value || (!text.value.trim() && !pictures.value.length)} onClick={() => void submit()}>
            {task ? (running ? "Queue" : "Send") : "Start"}
          </button>
        </div>
      </div>
    </div>
  );
}

/** A command of the page itself; false: it is for the server. */
async function command(line: string, task: Task | null): Promise<boolean> {
  const [name, ...more] = line.slice(1).split(/\s+/);
  const rest = more.join(" ").trim();
  switch (name) {
    case "help":
      document.dispatchEvent(new CustomEvent("tarmac:help"));
      return true;
    case "clear":
      go("#/");
      return true;
    case "tasks":
      go("#/");
      document.getElementById("search")?.focus();
      return true;
    case "resume":
      if (tasks.value.has(rest)) go(toTask(rest));
      else tell(`There is no task \`${rest}\`.`, "The list on the left has their titles.");
      return true;
    case "terminals":
      go("#/terminals");
      return true;
    case "quit":
      tell("The page stays open.", "Close its tab, or end `tarmac web` with Ctrl-C.");
      return true;
    case "cost":
    case "context":
      if (task) tell(`${money(task.cost)} · ${tokens(task.usage.input)} tokens in, ${tokens(task.usage.output)} out`, task.context_window ? `The context is ${Math.round((100 * (task.context ?? 0)) / task.context_window)} % full.` : "");
      return true;
    case "auto":
    case "mode":
    case "model":
      if (!task || !rest) {
        const now = name === "auto" ? (task?.level ?? welcome.value?.level) : name === "mode" ? (task?.mode ?? welcome.value?.mode) : (task?.model ?? welcome.value?.model);
        tell(`${name}: ${now ?? "not set"}`, task ? `/${name} NAME changes it.` : "Start a task, then change it there.");
        return true;
      }
      if (await attempt(name === "auto" ? "level" : name, { task: task.id, [name === "auto" ? "level" : name]: rest })) announcement.value = `${name}: ${rest}`;
      return true;
    default:
      return false;
  }
}
