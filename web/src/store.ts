/**
 * What the page knows, as signals. All of it is the server's: a reload loses nothing but where one looked.
 *
 * frame → signal. Items of a timeline have a place (`n`), so a frame that comes twice changes nothing.
 */

import { batch, computed, signal } from "@preact/signals";
import { call, get, link, ServerError } from "./connection";
import type { Item, Question, ServerFrame, Task, TaskRecord, Terminal, Welcome } from "./protocol";
import { screens } from "./screens";

export interface Trouble {
  id: number;
  what: string;
  hint: string;
}

export const welcome = signal<Welcome | null>(null);
export const tasks = signal<ReadonlyMap<string, Task>>(new Map());
export const terminals = signal<ReadonlyMap<string, Terminal>>(new Map());
export const troubles = signal<Trouble[]>([]);
export const announcement = signal("");

export const questions = computed<Question[]>(() =>
  [...tasks.value.values()].filter((task) => task.open).flatMap((task) => task.questions),
);

/** Approvals and questions of the model wait for a person; a finished task and a running command do not. */
const QUIET = new Set(["completion_result", "resume_task", "resume_completed_task", "command_output"]);
export const isPressing = (question: Question): boolean => !QUIET.has(question.ask);
export const pressing = computed(() => questions.value.filter(isPressing));

const PAGE = 200;
const KEPT = 400; // items above the view that stay in memory
let troubleId = 0;

export function tell(what: string, hint = ""): void {
  const id = ++troubleId;
  troubles.value = [...troubles.value.slice(-3), { id, what, hint }];
  setTimeout(() => dismiss(id), 12_000);
}

export function dismiss(id: number): void {
  troubles.value = troubles.value.filter((each) => each.id !== id);
}

/** A path as it reads in its workspace; that of the page when none is named. */
export function relative(path: string, workspace = welcome.peek()?.workspace): string {
  return workspace && path.startsWith(`${workspace}/`) ? path.slice(workspace.length + 1) : path;
}

/** Do it; tell the person if it fails. True: it was done. */
export async function attempt(verb: string, fields: object): Promise<boolean> {
  try {
    await call(verb, fields);
    return true;
  } catch (error) {
    if (!(error instanceof ServerError)) throw error;
    tell(error.what, error.hint);
    return false;
  }
}

/** The text that a model is saying, before it is a fact. */
export interface Streaming {
  request: string;
  text: string;
  reasoning: string;
}

/** The timeline of one task, as far as it was fetched. */
export class Timeline {
  readonly length = signal(0);
  readonly changed = signal(0); // counts changes of `items`
  readonly streaming = signal<Streaming | null>(null);
  readonly ready = signal(false);
  readonly items: (Item | undefined)[] = [];
  readonly outputs = new Map<string, ReturnType<typeof signal<string>>>();
  readonly progress = signal<ReadonlyMap<string, string>>(new Map());
  private seq = 0;
  private opening = false;
  private late: Item[] | null = null; // items that changed while the end was fetched
  private readonly asked = new Set<number>();
  private wanted = 0; // the first item in view
  private dropped = 0; // items before this one were let go; they are fetched again when wanted
  private pieces: TaskRecord[] = [];
  private frame = 0;

  constructor(readonly task: string) {}

  /** Fetch the end, then follow. Also after the connection was lost. */
  async open(): Promise<void> {
    if (this.opening) return;
    this.opening = true;
    try {
      if (!this.ready.value) await this.fetchEnd();
      this.pieces = []; // what is being said comes again, from its beginning
      this.streaming.value = null;
      const followed = await call("follow", { task: this.task, after: this.seq });
      if (followed["reset"]) await this.fetchEnd(); // too much was missed to be sent one by one
    } catch (error) {
      if (!(error instanceof ServerError)) throw error;
      if (link.value === "online") tell(error.what, error.hint);
    } finally {
      this.opening = false;
    }
  }

  private async fetchEnd(): Promise<void> {
    type Page = { seq: number; length: number; items: Item[] };
    this.late = [];
    try {
      const page = await get<Page>(`/api/tasks/${this.task}/timeline?limit=${PAGE}`);
      if (this.ready.value) this.items.length = 0;
      this.put(page.items, Math.max(page.length, this.seq > page.seq ? this.length.value : 0));
      this.put(this.late);
      this.seq = Math.max(this.seq, page.seq);
      this.ready.value = true;
    } finally {
      this.late = null;
    }
  }

  close(): void {
    cancelAnimationFrame(this.frame);
    if (link.value === "online") void call("unfollow", { task: this.task }).catch(() => undefined);
  }

  /** See that the items from `first` to `last` are there, or come. */
  want(first: number, last: number): void {
    this.wanted = first;
    this.dropped = Math.min(this.dropped, Math.floor(first / PAGE) * PAGE);
    for (let page = Math.floor(first / PAGE); page <= Math.floor(last / PAGE); page++) {
      const from = page * PAGE;
      const to = Math.min(from + PAGE, this.length.value);
      let missing = false;
      for (let at = from; at < to; at++) missing ||= !this.items[at];
      if (!missing || this.asked.has(page)) continue;
      this.asked.add(page);
      get<{ items: Item[] }>(`/api/tasks/${this.task}/timeline?before=${to}&limit=${to - from}`)
        .then((got) => this.put(got.items.filter((item) => !this.items[item.n])))
        .catch((error: unknown) => {
          if (error instanceof ServerError && link.value === "online") tell(error.what, error.hint);
        })
        .finally(() => this.asked.delete(page));
    }
  }

  add(record: TaskRecord, items: Item[] | undefined, length: number | undefined): void {
    if (record.signal) return this.stream(record);
    if (record.seq !== undefined) this.seq = Math.max(this.seq, record.seq);
    if (record.kind === "model_said" || record.kind === "request_failed") {
      this.pieces = this.pieces.filter((piece) => piece["request"] !== record["request"]); // they are in the fact now
      if (this.streaming.value?.request === record["request"]) this.streaming.value = null;
    }
    if (record.kind === "tool_finished") this.forget(record["call"]);
    this.late?.push(...(items ?? []));
    this.put(items ?? [], length);
  }

  /** What was missed while the connection was away. */
  catchUp(records: TaskRecord[], items: Item[], length: number): void {
    this.pieces = [];
    this.streaming.value = null;
    for (const record of records) this.seq = Math.max(this.seq, record.seq ?? 0);
    this.put(items, length);
  }

  private put(items: Item[], length?: number): void {
    batch(() => {
      for (const item of items) this.items[item.n] = item;
      if (length !== undefined) {
        this.items.length = Math.max(length, 0);
        this.length.value = length;
      }
      for (const end = Math.min(this.wanted, this.items.length) - KEPT; this.dropped < end; this.dropped++) {
        this.items[this.dropped] = undefined;
      }
      this.changed.value++;
    });
  }

  /** Pieces of text are drawn once a frame, however many come. */
  private stream(record: TaskRecord): void {
    this.pieces.push(record);
    if (this.pieces.length > 1 && this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      const pieces = this.pieces.splice(0);
      batch(() => pieces.forEach((piece) => this.streamed(piece)));
    });
  }

  private streamed(record: TaskRecord): void {
    const text = typeof record["text"] === "string" ? record["text"] : "";
    const request = String(record["request"] ?? "");
    if (record.signal === "text_streamed" || record.signal === "reasoning_streamed") {
      const before = this.streaming.value;
      const now = before?.request === request ? before : { request, text: "", reasoning: "" };
      this.streaming.value =
        record.signal === "text_streamed" ? { ...now, text: now.text + text } : { ...now, reasoning: now.reasoning + text };
    } else if (record.signal === "output_streamed") {
      const data = record["data"];
      const more = typeof data === "string" ? data : decodeBase64((data as { base64: string }).base64);
      const output = this.output(String(record["call"]));
      output.value = (output.value + more).slice(-20_000);
    } else if (record.signal === "progress_made") {
      this.progress.value = new Map(this.progress.value).set(String(record["call"]), text);
    } else if (record.signal === "retry_counted") {
      announcement.value = `The request is tried again in ${Math.ceil(Number(record["seconds"]))} s.`;
    }
  }

  /** What a call streamed is in its result now. */
  private forget(callId: unknown): void {
    this.pieces = this.pieces.filter((piece) => piece["call"] !== callId);
    this.outputs.delete(String(callId));
    if (!this.progress.peek().has(String(callId))) return;
    const rest = new Map(this.progress.peek());
    rest.delete(String(callId));
    this.progress.value = rest;
  }

  output(callId: string): { value: string } {
    let found = this.outputs.get(callId);
    if (!found) this.outputs.set(callId, (found = signal("")));
    return found as { value: string };
  }
}

function decodeBase64(text: string): string {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return new TextDecoder().decode(bytes);
}

export const timeline = signal<Timeline | null>(null);

/** Show a task's timeline; null: none. */
export function show(task: string | null): void {
  if (timeline.peek()?.task === task) return;
  timeline.peek()?.close();
  const next = task ? new Timeline(task) : null;
  timeline.value = next;
  if (link.peek() === "online") void next?.open();
}

/** A terminal that its task gave back stays in that task's view until another takes it. */
function kept(terminal: Terminal): Terminal {
  const before = terminals.peek().get(terminal.id);
  return { ...terminal, last_task: terminal.task ?? terminal.last_task ?? before?.last_task ?? null };
}

function replaced<V>(map: ReadonlyMap<string, V>, key: string, value: V | undefined): ReadonlyMap<string, V> {
  const next = new Map(map);
  if (value === undefined) next.delete(key);
  else next.set(key, value);
  return next;
}

/** A frame of the server. */
export function receive(frame: ServerFrame): void {
  switch (frame.type) {
    case "welcome":
      if (welcome.peek()) announcement.value = "The server is back.";
      if (welcome.peek() && welcome.peek()?.server !== frame.server) screens.forget(); // its terminals are others
      welcome.value = frame;
      queueMicrotask(() => {
        void timeline.peek()?.open();
        screens.reconnected();
      });
      break;
    case "tasks":
      tasks.value = new Map(frame.tasks.map((task) => [task.id, task]));
      break;
    case "task": {
      const before = tasks.peek().get(frame.task.id);
      tasks.value = replaced(tasks.value, frame.task.id, frame.task);
      const known = new Set(before?.questions.map((each) => each.question));
      const fresh = frame.task.questions.find((each) => isPressing(each) && !known.has(each.question));
      if (fresh) announcement.value = `Task ${frame.task.number} waits for you: ${fresh.details?.title ?? fresh.text}`;
      break;
    }
    case "task_gone":
      tasks.value = replaced(tasks.value, frame.task, undefined);
      break;
    case "terminals":
      terminals.value = new Map(frame.terminals.map((terminal) => [terminal.id, kept(terminal)]));
      break;
    case "terminal":
      terminals.value = replaced(terminals.value, frame.terminal.id, kept(frame.terminal));
      break;
    case "terminal_gone":
      terminals.value = replaced(terminals.value, frame.terminal, undefined);
      screens.gone(frame.terminal);
      break;
    case "record":
      if (timeline.peek()?.task === frame.task) timeline.peek()?.add(frame.record, frame.items, frame.length);
      break;
    case "records":
      if (timeline.peek()?.task === frame.task) timeline.peek()?.catchUp(frame.records, frame.items, frame.length);
      break;
    case "taken":
      screens.taken(frame.terminal, frame.epoch);
      break;
    case "trouble":
      tell(frame.what, frame.hint);
      break;
    case "reply":
      break;
  }
}
