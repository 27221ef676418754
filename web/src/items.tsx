/** One row of a timeline. */

import { signal } from "@preact/signals";
import type { ComponentChildren, VNode } from "preact";
import { createContext } from "preact";
import { useContext, useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { call, getBytes, ServerError } from "./connection";
import { Diff } from "./diff";
import { clock, duration, plain, sentence, tokens } from "./format";
import { inline, Markdown } from "./markdown";
import type { Blob as Picture, Item, TaskRecord } from "./protocol";
import { toTask } from "./routes";
import { attempt, questions, relative, tasks, tell, timeline } from "./store";

/** The task whose timeline is drawn. Its folded rows stay as the person left them. */
export const TaskContext = createContext("");
const folds = signal<ReadonlyMap<string, boolean>>(new Map());

const QUIET_ASKS = new Set(["completion_result", "resume_task", "resume_completed_task", "command_output"]);

/** PURE: whether an item is not drawn: a request that went well, or what another row shows. */
export function isHidden(item: Item): boolean {
  if (item.kind === "api_req_started") return item.state !== "interrupted";
  if (item.kind === "command_output") return true;
  if (item.type === "ask") return QUIET_ASKS.has(item.kind) || (item.kind !== "followup" && item.answered && item.answer?.["answer"] === "yes" && !item.answer["text"]);
  return false;
}

export function ItemRow({ item }: { item: Item }): VNode {
  if (item.type === "ask") return <AskRow item={item} />;
  switch (item.kind) {
    case "tool":
      return <ToolRow item={item} />;
    case "api_response":
      return (
        <div class="said">
          <Markdown text={item.text} />
        </div>
      );
    case "reasoning":
      return <Fold item={item} name="Thought" text={item.text} />;
    case "text":
    case "user_feedback":
      return <UserRow item={item} />;
    case "completion_result":
      return (
        <div class="result">
          <div class="result-head">
            <span class="dot done" aria-hidden="true" />
            Done <time>{clock(item.at)}</time>
          </div>
          <Markdown text={item.text} />
        </div>
      );
    case "checkpoint_created":
      return <CheckpointRow item={item} />;
    case "condense_context":
      return <Fold item={item} name="Earlier conversation, condensed" text={item.text} />;
    case "subtask_result":
      return <SubtaskRow item={item} />;
    case "mode_changed":
      return <Notice>Mode: {item.text}</Notice>;
    case "error":
      return <Notice bad>{sentence(item.text)}</Notice>;
    case "api_req_retried":
      return <Notice>The model did not answer, and is asked again: {item.text}</Notice>;
    case "api_req_started":
      return <Notice>The request was interrupted.</Notice>;
    default:
      return <Notice>{inline(sentence(item.text || item.kind.replaceAll("_", " ")))}</Notice>;
  }
}

function Notice({ bad = false, children }: { bad?: boolean; children: ComponentChildren }): VNode {
  return <p class={bad ? "notice bad" : "notice"}>{children}</p>;
}

export function UserRow({ item }: { item: Item }): VNode {
  return (
    <div class={`user ${item.state}`}>
      <div class="user-text">{item.text}</div>
      <Pictures images={item.images} />
      {item.state === "queued" ? <span class="badge">queued</span> : null}
      {item.state === "withdrawn" ? <span class="badge">taken back</span> : null}
    </div>
  );
}

function useFold(item: Item, sort: string, initially: boolean): [boolean, () => void] {
  const key = `${useContext(TaskContext)}/${item.n}/${sort}`;
  const open = folds.value.get(key) ?? initially;
  return [open, () => (folds.value = new Map(folds.value).set(key, !open))];
}

function Fold({ item, name, text }: { item: Item; name: string; text: string }): VNode {
  const [open, toggle] = useFold(item, "text", false);
  return (
    <div class="fold">
      <button class="fold-head" type="button" aria-expanded={open} onClick={toggle}>
        <Chevron open={open} />
        {name}
        {open ? null : <span class="faint clip">{text.replace(/\s+/g, " ").slice(0, 160)}</span>}
      </button>
      {open ? (
        <div class="fold-body">
          <Markdown text={text} />
        </div>
      ) : null}
    </div>
  );
}

export function Chevron({ open }: { open: boolean }): VNode {
  return (
    <svg class={open ? "chevron open" : "chevron"} viewBox="0 0 12 12" width="10" height="10" aria-hidden="true">
      <path d="M4 2.500 8 6l-4 3.500" fill="none" stroke="currentColor" stroke-width="1.600" stroke-linecap="round" stroke-linejoin="round" />
    </svg>
  );
}

// Tools

interface ChangedFile {
  path: string;
  name?: string;
  operation?: string;
  diff?: string;
  added?: number;
  removed?: number;
}

interface CommandDetails {
  line: string;
  cwd: string;
  terminal: string | null;
  exit_code: number | null;
  signal?: string | null;
  running?: boolean;
  duration?: number;
  awaiting?: string | null;
  prompt?: string;
  output_bytes?: number;
  truncated?: boolean;
}

interface ToolDetails {
  files?: ChangedFile[];
  command?: CommandDetails;
}

/** PURE: the details of a fact, which may be JSON in a text. */
export function detailsOf(about: TaskRecord | null): ToolDetails {
  const details = about?.["details"];
  if (typeof details !== "string") return (details as ToolDetails | null | undefined) ?? {};
  try {
    return details ? (JSON.parse(details) as ToolDetails) : {};
  } catch {
    return {};
  }
}

/** PURE: what a tool printed, without the words around it that are for the model. */
export function printed(about: TaskRecord | null): string {
  const parts = (about?.["content"] as { type: string; text?: string }[] | undefined) ?? [];
  const text = parts.map((part) => part.text ?? "").join("\n");
  const tagged = /<(output-[0-9a-f]+)>\n?([\s\S]*?)\n?<\/\1>/.exec(text);
  return tagged ? tagged[2]! : /(^|\n)Output: \(none\)$/.test(text) ? "" : text;
}

const NOT_DONE: Readonly<Record<string, string>> = { denied: "Denied", interrupted: "Interrupted" };

/** PURE: "Running `make`" as "Denied: running `make`", for what never ran or did not end. */
function toolTitle(title: string, state: string): string {
  const word = NOT_DONE[state];
  return word ? `${word}: ${/^.[a-z]/.test(title) ? title.charAt(0).toLowerCase() + title.slice(1) : title}`.replace(/: interrupted$/, "") : title;
}

function ToolRow({ item }: { item: Item }): VNode {
  const about = item.about;
  const task = tasks.value.get(useContext(TaskContext));
  const cut = item.state === "running" && about !== null && task !== undefined && !task.running && !task.elsewhere; // its process is gone; a replay has no `about` yet
  const itemState = cut ? "interrupted" : item.state;
  const running = itemState === "running";
  const details = detailsOf(about);
  const command = details.command;
  const files = details.files ?? [];
  const exit = (about?.["exit_code"] as number | null | undefined) ?? command?.exit_code;
  const bad = item.state === "failed" || item.state === "denied" || (typeof exit === "number" && exit !== 0);
  const small = files.reduce((sum, file) => sum + (file.diff?.split("\n").length ?? 0), 0) <= 24;
  const [open, toggle] = useFold(item, "tool", (running && Boolean(about?.["cwd"])) || (files.length > 0 && small) || (bad && Boolean(command)));
  const seconds = Number(about?.["seconds"] ?? 0);
  const terminal = (about?.["terminal"] as string | null | undefined) ?? command?.terminal;
  const state = running ? "running" : bad ? "failed" : itemState === "interrupted" || itemState === "skipped" ? "idle" : "done";
  return (
    <div class={`tool ${state}`}>
      <button class="tool-head" type="button" aria-expanded={open} onClick={toggle}>
        <span class={`dot ${state}`} aria-hidden="true" />
        <span class="tool-title">{inline(toolTitle(item.text, itemState))}</span>
        <span class="tool-facts">
          {files.map((file) => (
            <span key={file.path}>
              <span class="plus">+{file.added ?? 0}</span> <span class="minus">−{file.removed ?? 0}</span>
            </span>
          ))}
          {command?.running ? <span>still running</span> : null}
          {typeof exit === "number" && exit !== 0 ? <span class="bad">exit {exit}</span> : null}
          {!NOT_DONE[itemState] && !running && seconds >= 0.1 ? <span>{duration(seconds)}</span> : null}
          {terminal ? <span>{terminal}</span> : null}
        </span>
        <Chevron open={open} />
      </button>
      {open ? <ToolBody item={item} details={details} running={running} /> : null}
      <Pictures images={item.images} />
    </div>
  );
}

function ToolBody({ item, details, running }: { item: Item; details: ToolDetails; running: boolean }): VNode {
  const files = details.files?.filter((file) => file.diff) ?? [];
  const cwd = (item.about?.["cwd"] as string | undefined) ?? details.command?.cwd;
  return (
    <div class="tool-body">
      {files.map((file) => (
        <Diff
          key={file.path}
          path={file.name ?? file.path}
          diff={file.diff ?? ""}
          isNew={file.operation === "created"}
          {...(file.added === undefined ? {} : { added: file.added })}
          {...(file.removed === undefined ? {} : { removed: file.removed })}
        />
      ))}
      {cwd && !files.length ? <p class="faint where path">in {cwd}</p> : null}
      {running ? <RunningCommand call={item.call} /> : null}
      {running ? <LiveOutput call={item.call ?? ""} quiet={!cwd} /> : files.length ? null : <Output item={item} command={details.command} />}
    </div>
  );
}

/** A command that runs is asked about, though nothing waits for the answer. */
function RunningCommand({ call }: { call: string | null }): VNode | null {
  const asked = questions.value.find((each) => each.ask === "command_output" && each.call === call);
  if (!asked) return null;
  const answer = (kind: string) => (): void => void attempt("answer", { task: asked.task, question: asked.question, kind });
  return (
    <p class="running-command">
      <button class="quiet" type="button" onClick={answer("yes")}>Continue in the background</button>
      <button class="quiet" type="button" onClick={answer("no")}>Stop the command</button>
    </p>
  );
}

function LiveOutput({ call, quiet }: { call: string; quiet: boolean }): VNode {
  const known = timeline.value;
  const text = known ? plain(known.output(call).value) : "";
  const progress = known?.progress.value.get(call);
  const lines = text.split("\n").slice(-14).join("\n");
  return (
    <div>
      {progress ? <p class="faint">{progress}</p> : null}
      {lines.trim() ? (
        <pre class="output live" tabIndex={0} aria-label="Output so far">
          {lines}
        </pre>
      ) : quiet || progress ? null : (
        <p class="faint">No output yet.</p>
      )}
    </div>
  );
}

const HEAD_LINES = 40;
const told = (error: unknown): void => {
  if (error instanceof ServerError) tell(error.what, error.hint);
};

function Output({ item, command }: { item: Item; command: CommandDetails | undefined }): VNode {
  const task = useContext(TaskContext);
  const whole = useSignal<string | null>(null);
  const text = whole.value ?? plain(printed(item.about));
  const [all, showAll] = useFold(item, "output", false);
  const lines = text.replace(/\n+$/, "").split("\n");
  const cut = !all && whole.value === null && lines.length > HEAD_LINES;
  const more = Boolean(command?.output_bytes && command.output_bytes > text.length + 200);
  const fetchAll = async (): Promise<void> => {
    const { data } = await getBytes(`/api/tasks/${task}/output/${encodeURIComponent(item.call ?? "")}?size=2000000`);
    whole.value = plain(new TextDecoder().decode(data));
  };
  if (!text.trim()) return <p class="faint">No output.</p>;
  return (
    <div>
      <pre class="output" tabIndex={0} role="group" aria-label="Output">
        {cut ? [...lines.slice(0, 10), more ? "⋯" : `⋯ ${lines.length - 30} lines ⋯`, ...lines.slice(-20)].join("\n") : lines.join("\n")}
      </pre>
      {more && whole.value === null ? (
        <button class="quiet" type="button" onClick={() => void fetchAll().catch(told)}>
          Show the whole output ({tokens(command?.output_bytes ?? 0)} bytes)
        </button>
      ) : cut ? (
        <button class="quiet" type="button" onClick={showAll}>
          Show all {lines.length} lines
        </button>
      ) : null}
    </div>
  );
}

// Pictures come with the proof in a header, which <img> can't send.

const urls = new Map<string, Promise<string>>();

export function Pictures({ images }: { images: Picture[] }): VNode | null {
  if (!images.length) return null;
  return (
    <div class="pictures">
      {images.map((image) => (
        <Image key={image.sha256} image={image} />
      ))}
    </div>
  );
}

function Image({ image }: { image: Picture }): VNode {
  const task = useContext(TaskContext);
  const url = useSignal("");
  const large = useSignal(false);
  useEffect(() => {
    const key = `/api/tasks/${task}/blob/${image.sha256}`;
    let found = urls.get(key);
    if (!found) {
      found = getBytes(key).then(({ data }) => URL.createObjectURL(new Blob([data as BlobPart], { type: image.media_type })));
      urls.set(key, found);
    }
    found.then((made) => (url.value = made)).catch(() => urls.delete(key));
  }, [image.sha256]);
  return (
    <button class={large.value ? "picture large" : "picture"} type="button" aria-expanded={large.value} aria-label="Picture" onClick={() => (large.value = !large.value)}>
      {url.value ? <img src={url.value} alt="" /> : null}
    </button>
  );
}

// Questions, checkpoints, subtasks

const ANSWERS: Readonly<Record<string, string>> = { yes: "You allowed it", no: "You refused", message: "You said", object: "You chose by file", skip: "Nobody answered" };

function AskRow({ item }: { item: Item }): VNode {
  const answer = item.answer;
  const text = typeof answer?.["text"] === "string" ? answer["text"] : "";
  const by = answer?.["by"] && answer["by"] !== "web" ? ` (${String(answer["by"])})` : "";
  const followup = item.kind === "followup";
  if (!item.answered) {
    return (
      <div class="ask open">
        <span class="dot waiting" aria-hidden="true" />
        {followup ? <Markdown text={item.text} /> : "Waits for your answer"}
      </div>
    );
  }
  return (
    <div class="ask">
      {followup ? <Markdown text={item.text} /> : null}
      <p class={answer?.["answer"] === "no" ? "answered bad" : "answered"}>
        {followup && text ? text : `${ANSWERS[String(answer?.["answer"])] ?? "Answered"}${by}${text ? `: ${text}` : "."}`}
      </p>
    </div>
  );
}

interface UndoneFile {
  path: string;
  fate: string;
  why?: string;
  created?: boolean;
  diff?: string | null;
}

/** Undo is shown before it is done: the first click asks what would change, the second does it. */
function CheckpointRow({ item }: { item: Item }): VNode {
  const task = useContext(TaskContext);
  const files = useSignal<UndoneFile[] | null>(null);
  const why = String(item.about?.["why"] ?? "");
  const workspace = tasks.value.get(task)?.workspace;
  const about = { task, to: item.id };
  const preview = async (): Promise<void> => {
    try {
      files.value = ((await call("undo_preview", about))["files"] as UndoneFile[] | undefined) ?? [];
    } catch (error) {
      if (!(error instanceof ServerError)) throw error;
      tell(error.what, error.hint);
    }
  };
  const undo = async (): Promise<void> => {
    if (await attempt("undo", about)) files.value = null;
  };
  const changed = files.value?.filter((file) => file.fate === "restored") ?? [];
  return (
    <div>
      <div class="checkpoint">
        <span class="checkpoint-line">
          Checkpoint {why ? <span class="clip">{inline(why)}</span> : null} <time>{clock(item.at)}</time>
        </span>
        <button class="quiet" type="button" aria-expanded={files.value !== null} onClick={() => (files.value ? (files.value = null) : void preview())}>
          {files.value ? "Keep the files" : "Undo to here…"}
        </button>
      </div>
      {files.value ? (
        <div class="undo">
          {files.value.map((file) => (
            <div key={file.path}>
              {file.diff ? <Diff path={relative(file.path, workspace)} diff={file.diff} /> : <p class="faint path">{relative(file.path, workspace)}</p>}
              {file.fate === "restored" ? null : (
                <p class="faint">
                  {file.fate}
                  {file.why ? `: ${file.why}` : ""}
                </p>
              )}
            </div>
          ))}
          {changed.length ? (
            <button type="button" onClick={() => void undo()}>
              Bring back {changed.length === 1 ? "this file" : `these ${changed.length} files`}
            </button>
          ) : (
            <p class="faint">There is nothing to bring back: the files are as they were here.</p>
          )}
        </div>
      ) : null}
    </div>
  );
}

function SubtaskRow({ item }: { item: Item }): VNode {
  const child = String(item.about?.["child"] ?? "");
  const known = tasks.value.get(child);
  return (
    <div class="subtask">
      <div class="result-head">
        <span class="dot done" aria-hidden="true" />
        Subtask {child ? <a href={toTask(child)}>{known?.title ?? child}</a> : null}
      </div>
      <Markdown text={item.text} />
    </div>
  );
}
