/**
 * A question to the person. What would happen comes first. The focus is on the card and never on Allow, and nothing
 * is accepted while the card is younger than 300 ms: a click or key that was meant for something else allows nothing.
 */

import { useSignal } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { call, ServerError } from "./connection";
import { Diff } from "./diff";
import { sentence } from "./format";
import { Markdown } from "./markdown";
import type { ApprovalRequest, Question } from "./protocol";
import { attempt, relative, tell } from "./store";

const GUARD = 300;
const TO_TRY = 95_000; // a trial has a minute

const HEADS: Readonly<Record<string, string>> = {
  Execute: "Run this command?",
  SendInput: "Type this into the terminal?",
  OpenTerminal: "Open a terminal with this shell?",
  KillTerminal: "Close this terminal?",
  ReadFile: "Read this file?",
  WriteFile: "Write this file?",
};
const PLAIN: Readonly<Record<string, string>> = {
  followup: "The model asks",
  api_req_failed: "The model can't be reached",
  mistake_limit_reached: "The model is stuck",
  workspace_prompt: "This workspace replaces what Tarmac tells the model. Use it?",
  auto_approval_limit: "The limit of what runs without asking is reached. Go on?",
};
const SCOPES = [
  ["task", "in this task"],
  ["workspace", "in this workspace"],
  ["everywhere", "everywhere"],
] as const;

interface TryResult {
  changes?: { path: string; kind: string; diff: string; new?: boolean }[];
  more?: number;
  output?: string;
  exit_code?: number | null;
}

export function QuestionCard({ question, compact = false }: { question: Question; compact?: boolean }): VNode {
  const card = useRef<HTMLElement>(null);
  const ready = useSignal(false);
  const busy = useSignal(false);
  const words = useSignal("");
  const panel = useSignal<"" | "always" | "edit">("");
  const edited = useSignal("");
  const tried = useSignal<TryResult | null>(null);
  const trying = useSignal(false);
  const chosen = useSignal<ReadonlySet<string>>(new Set());
  const whole = useSignal(false);
  const requests = question.details?.requests ?? [];
  const only = requests.length === 1 ? requests[0] : undefined;
  const approval = requests.length > 0 || question.ask === "tool" || question.ask === "command";
  const byFile = requests.length > 1 && requests.every((each) => each.file);

  useEffect(() => {
    const timer = setTimeout(() => (ready.value = true), GUARD);
    const active = document.activeElement;
    const typing = active instanceof HTMLInputElement || active instanceof HTMLTextAreaElement;
    if (!compact && !typing) card.current?.focus({ preventScroll: true });
    if (byFile) chosen.value = new Set(requests.map((each) => each.shown));
    return () => clearTimeout(timer);
  }, []);

  const answer = async (fields: object): Promise<void> => {
    if (!ready.value || busy.value) return;
    busy.value = true;
    await attempt("answer", { task: question.task, question: question.question, ...fields });
    busy.value = false;
  };
  const allow = (more: object = {}): void =>
    void answer({ kind: "yes", ...(words.value.trim() ? { text: words.value.trim() } : {}), ...more });
  const deny = (): void => void answer({ kind: "no", ...(words.value.trim() ? { text: words.value.trim() } : {}) });
  const say = (text: string): void => void (text.trim() && answer({ kind: "message", text: text.trim() }));
  const someFiles = (): void =>
    void answer({
      kind: "object",
      choices: requests.map((each) => ({ path: each.shown, answer: chosen.value.has(each.shown) ? "yes" : "no" })),
    });
  const edit = (): void => {
    edited.value = only?.shown ?? "";
    panel.value = panel.value === "edit" ? "" : "edit";
  };
  const tryIt = async (): Promise<void> => {
    if (trying.value) return;
    trying.value = true;
    try {
      tried.value = (await call("try", { task: question.task, question: question.question }, TO_TRY)) as TryResult;
    } catch (error) {
      if (error instanceof ServerError) tell(error.what, error.hint);
    }
    trying.value = false;
  };
  const keepTrial = async (): Promise<void> => {
    if (!ready.value || busy.value) return;
    busy.value = true;
    try {
      const done = (await call("keep", { task: question.task, question: question.question })) as { failed?: string[] };
      for (const each of done.failed ?? []) tell(`Not kept: ${each}`, "");
    } catch (error) {
      if (error instanceof ServerError) tell(error.what, error.hint);
    }
    busy.value = false;
  };
  const discardTrial = (): void => {
    tried.value = null;
    void attempt("discard", { task: question.task, question: question.question });
  };
  const key = (event: KeyboardEvent): void => {
    if (event.target !== card.current || event.ctrlKey || event.metaKey || event.altKey) return;
    const number = Number(event.key);
    if (approval && event.key === "y") allow();
    else if (approval && event.key === "n") deny();
    else if (approval && event.key === "a" && only?.always.length) panel.value = "always";
    else if (approval && event.key === "s" && only?.always.length) allow({ always: { scope: "task", offer: 0 } });
    else if (question.can_try && event.key === "t") void tryIt();
    else if (approval && event.key === "e" && only?.kind === "Execute") edit();
    else if (number >= 1 && number <= question.choices.length) say(question.choices[number - 1]!);
    else return;
    event.preventDefault();
  };
  const begin = (): void => {
    if (!words.value) void call("hold", { task: question.task, question: question.question }).catch(() => undefined);
  };

  const head = only ? (HEADS[only.kind] ?? `Allow this (${only.kind})?`) : requests.length ? `Change these ${requests.length} files?` : (PLAIN[question.ask] ?? (approval ? "Allow this?" : "A question"));
  const off = !ready.value || busy.value;
  return (
    <section
      class={`question ${only?.risk ?? ""} ${compact ? "compact" : ""}`}
      ref={card}
      tabIndex={-1}
      aria-label={head}
      onKeyDown={key}
    >
      <header>
        <h2>{head}</h2>
        {only ? <span class={`risk ${only.risk}`}>{only.risk} risk</span> : null}
      </header>
      {requests.map((request) => (
        <RequestBody
          key={request.id}
          request={request}
          whole={whole.value || !compact}
          {...(byFile ? { chosen: chosen.value.has(request.shown), choose: () => (chosen.value = toggled(chosen.value, request.shown)) } : {})}
        />
      ))}
      {!requests.length && question.text ? <Markdown text={question.text} /> : null}
      {tried.value ? <Tried result={tried.value} off={off} keep={() => void keepTrial()} discard={discardTrial} /> : null}

      {panel.value === "always" && only ? (
        <div class="panel" ref={reveal}>
          <p>Allow from now on, without asking:</p>
          {only.always.map((offer, at) => (
            <div class="offer" key={at}>
              <code>{offer.kind === "prefix" ? `${offer.text} …` : offer.text}</code>
              <span class="faint">{offer.kind === "prefix" ? "and everything that begins with these words" : "exactly this"}</span>
              <span class="buttons">
                {SCOPES.map(([scope, where]) => (
                  <button key={scope} type="button" disabled={off} onClick={() => allow({ always: { scope, offer: at } })}>
                    {where}
                  </button>
                ))}
              </span>
            </div>
          ))}
          <p class="faint">Settings lists what was allowed, and takes it back.</p>
        </div>
      ) : null}
      {panel.value === "edit" ? (
        <form
          class="panel"
          ref={reveal}
          onSubmit={(event) => {
            event.preventDefault();
            if (edited.value.trim() && edited.value !== only?.shown) allow({ edited: edited.value });
          }}
        >
          <label>
            Your command. It is judged again.
            <textarea rows={Math.min(8, edited.value.split("\n").length)} value={edited.value} spellcheck={false} onInput={(event) => (edited.value = event.currentTarget.value)} />
          </label>
          <button type="submit" disabled={off}>
            Run this instead
          </button>
        </form>
      ) : null}

      {question.choices.length && !approval ? (
        <div class="choices">
          {question.choices.map((choice, at) => (
            <button key={choice} type="button" disabled={off} onClick={() => say(choice)}>
              <kbd>{at + 1}</kbd> {choice}
            </button>
          ))}
        </div>
      ) : null}

      <form
        class="actions"
        onSubmit={(event) => {
          event.preventDefault();
          say(words.value);
        }}
      >
        {question.ask === "followup" ? null : (
          <>
            <button class="primary" type="button" disabled={off} onClick={byFile ? someFiles : () => allow()}>
              {approval ? (byFile ? `Allow ${chosen.value.size} of ${requests.length}` : "Allow once") : question.ask === "workspace_prompt" ? "Use it" : "Go on"}
            </button>
            <button type="button" disabled={off} onClick={deny}>
              {approval ? "Deny" : question.ask === "workspace_prompt" ? "Don't use it" : "Stop"}
            </button>
            {only?.always.length ? (
              <button type="button" aria-expanded={panel.value === "always"} onClick={() => (panel.value = panel.value === "always" ? "" : "always")}>
                Always…
              </button>
            ) : null}
            {only?.kind === "Execute" && !compact ? (
              <button type="button" aria-expanded={panel.value === "edit"} onClick={edit}>
                Edit
              </button>
            ) : null}
            {question.can_try ? (
              <button type="button" disabled={trying.value} title="Run it on a copy of the workspace, without a network" onClick={() => void tryIt()}>
                {trying.value ? "Trying…" : "Try it"}
              </button>
            ) : null}
          </>
        )}
        <input
          type="text"
          aria-label={question.ask === "followup" ? "Your answer" : "Say why not, or what to do instead"}
          placeholder={question.ask === "followup" ? "Your answer" : "Say why not, or what instead"}
          value={words.value}
          onInput={(event) => {
            begin();
            words.value = event.currentTarget.value;
          }}
        />
        {words.value.trim() ? (
          <button type="submit" disabled={off}>
            Send
          </button>
        ) : null}
      </form>
      {compact || !approval ? null : (
        <p class="keys faint" aria-hidden="true">
          <kbd>y</kbd> allow <kbd>n</kbd> deny {only?.always.length ? <><kbd>s</kbd> this task <kbd>a</kbd> always </> : null}
          {only?.kind === "Execute" ? <><kbd>e</kbd> edit </> : null}
          {question.can_try ? <><kbd>t</kbd> try</> : null}
        </p>
      )}
    </section>
  );
}

function toggled(set: ReadonlySet<string>, name: string): ReadonlySet<string> {
  const next = new Set(set);
  if (!next.delete(name)) next.add(name);
  return next;
}

function RequestBody({ request, whole, chosen, choose }: { request: ApprovalRequest; whole: boolean; chosen?: boolean; choose?: () => void }): VNode {
  const file = request.file;
  const explained = request.explanation && !request.reason.toLowerCase().includes(request.explanation.toLowerCase());
  const parts = request.parts.filter((part) => part.decision !== "allow");
  const severalParts = request.parts.length > 1 && parts.length > 0;
  return (
    <div class="request">
      {choose ? (
        <label class="choose">
          <input type="checkbox" checked={chosen ?? false} onChange={choose} /> {request.shown}
        </label>
      ) : null}
      {explained && !file ? <p class="effect">{sentence(request.explanation)}</p> : null}
      {file ? null : (
        <pre class="command" tabIndex={0} role="group" aria-label="What would run">
          {request.shown}
        </pre>
      )}
      {request.warnings.map((warning) => (
        <p class="warning" key={warning}>
          {sentence(warning)}
        </p>
      ))}
      {file?.outside ? <p class="warning">It is outside of the workspace.</p> : null}
      {file?.protected ? <p class="warning">It is protected: {file.protected}</p> : null}
      {file?.diff && whole ? <Diff path={relative(file.path)} diff={file.diff} isNew={file.new} /> : null}
      {file && !(file.diff && whole) && !choose ? <p class="command path">{relative(file.path)}</p> : null}
      <p class="facts">
        {request.reason && !(whole && severalParts) && !sameWords(request.reason, request.explanation) ? <span>{sentence(request.reason)}</span> : null}
        {request.directory ? (
          <span>
            in <code class="path">{request.directory}</code>
          </span>
        ) : null}
        {request.terminal ? <span>terminal {request.terminal}</span> : null}
      </p>
      {whole && severalParts ? (
        <ul class="request-parts">
          {parts.map((part) => (
            <li key={part.text}>
              <code>{part.text}</code> <span class="faint">{sentence(part.reason || part.explanation)}</span>
            </li>
          ))}
        </ul>
      ) : null}
    </div>
  );
}

function Tried({ result, off, keep, discard }: { result: TryResult; off: boolean; keep: () => void; discard: () => void }): VNode {
  const changes = result.changes ?? [];
  const count = changes.length + (result.more ?? 0);
  const code = result.exit_code === null || result.exit_code === undefined ? "it did not end in time and was stopped" : `exit code ${result.exit_code}`;
  return (
    <div class="panel tried" ref={reveal} role="group" aria-label="What it did on a copy">
      <p>
        On a copy of the workspace: {code}; {count ? `${count} ${count === 1 ? "file" : "files"} changed.` : "no file changed."}
      </p>
      <span class="buttons">
        <button type="button" disabled={off} onClick={keep}>
          Keep these changes
        </button>
        <button type="button" onClick={discard}>
          Discard
        </button>
      </span>
      {changes.map((change) =>
        change.diff ? (
          <Diff key={change.path} path={change.path} diff={change.diff} isNew={change.new ?? false} />
        ) : (
          <p class="facts" key={change.path}>
            {change.kind} <code>{change.path}</code>
          </p>
        ),
      )}
      {result.more ? <p class="faint">… and {result.more} files more</p> : null}
      {result.output?.trim() ? (
        <pre class="output" tabIndex={0}>
          {result.output}
        </pre>
      ) : null}
    </div>
  );
}

const sameWords = (reason: string, explanation: string): boolean => explanation.toLowerCase().includes(reason.toLowerCase().replace(/^it /, ""));

/** A panel that was opened is seen, however long the question is. */
const reveal = (panel: HTMLElement | null): void => panel?.scrollIntoView({ block: "nearest" });
