/** The frames and answers of the server: docs/web.md, "Protocol". */

export interface Usage {
  input: number;
  output: number;
  cache_reads?: number;
  cache_writes?: number;
}

export interface Todo {
  text: string;
  status: "open" | "doing" | "done";
}

export interface Grantable {
  kind: string;
  text: string;
}

export interface ShownFile {
  path: string;
  new: boolean;
  diff: string;
  outside: boolean;
  protected: string;
}

export type Risk = "low" | "medium" | "high" | "critical";

export interface ShownPart {
  text: string;
  decision: string;
  risk: Risk;
  reason: string;
  explanation: string;
}

export interface ApprovalRequest {
  id: string;
  kind: string;
  shown: string;
  warnings: string[];
  parts: ShownPart[];
  directory: string;
  terminal: string;
  risk: Risk;
  reason: string;
  explanation: string;
  always: Grantable[];
  file: ShownFile | null;
  made: number;
  expires: number | null;
}

export interface Question {
  task: string;
  question: string;
  ask: string;
  text: string;
  call: string | null;
  choices: string[];
  details: { title?: string; requests?: ApprovalRequest[] } | null;
  at: number;
  can_try?: boolean;
}

export interface Queued {
  message: string;
  text: string;
}

export interface Task {
  id: string;
  number: number;
  title: string;
  status: string;
  open: boolean;
  elsewhere: boolean;
  running: boolean;
  workspace: string;
  mode: string;
  model: string;
  level: string;
  created: number;
  at: number;
  cost: number | null;
  usage: Usage;
  context: number | null;
  context_window: number | null;
  requests: number;
  todos: Todo[];
  questions: Question[];
  queue: Queued[];
  parent: string | null;
  root: string | null;
  children: string[];
  trouble: string;
}

export interface Blob {
  sha256: string;
  size: number;
  media_type: string;
}

/** A fact of the log or a signal. Kinds may gain fields, and new kinds may come. */
export interface TaskRecord {
  seq?: number;
  kind?: string;
  signal?: string;
  at?: number;
  [field: string]: unknown;
}

export interface Item {
  n: number;
  id: number;
  at: number;
  type: "say" | "ask";
  kind: string;
  text: string;
  images: Blob[];
  state: string;
  answered: boolean;
  answer: TaskRecord | null;
  call: string | null;
  about: TaskRecord | null;
}

export interface Terminal {
  id: string;
  number: number;
  name: string;
  task: string | null;
  last_task?: string | null;
  origin: string;
  cwd: string;
  shell: string;
  busy: boolean;
  command: string | null;
  by_person: boolean;
  held: boolean;
  holder: string | null;
  epoch: number;
  rows: number;
  columns: number;
  awaits: { wants: string; prompt: string; name: string } | null;
  last: { command: string; exit_code: number | null; duration: number } | null;
  created: number;
}

export interface Welcome {
  version: string;
  workspace: string;
  model: string;
  mode: string;
  level: string;
  levels: string[];
  page: string;
  server: string;
}

export type ServerFrame =
  | ({ type: "welcome" } & Welcome)
  | { type: "tasks"; tasks: Task[] }
  | { type: "task"; task: Task }
  | { type: "task_gone"; task: string }
  | { type: "terminals"; terminals: Terminal[] }
  | { type: "terminal"; terminal: Terminal }
  | { type: "terminal_gone"; terminal: string }
  | { type: "record"; task: string; record: TaskRecord; items?: Item[]; length?: number }
  | { type: "records"; task: string; records: TaskRecord[]; items: Item[]; length: number }
  | { type: "taken"; terminal: string; epoch: number }
  | { type: "trouble"; what: string; hint: string }
  | { type: "reply"; id: number; ok?: Reply; error?: Failure };

export type Reply = { [field: string]: unknown };

export interface Failure {
  what: string;
  hint?: string;
}

export interface Setting {
  value: unknown;
  default: unknown;
  origin: { place: string; where?: string | null; line?: number | null };
  about: string;
  variable?: string;
}

export interface Grant {
  id: string;
  kind: string;
  text: string;
  scope: string;
  where?: string | null;
  risk: string;
  granted?: number | string;
}

export interface UsageDay {
  day: string;
  input: number;
  output: number;
  cost: number | null;
  requests: number;
  unpriced?: number;
}

/** Kinds of binary frames. */
export enum Bytes {
  Snapshot = 1,
  Data = 2,
  Resized = 3,
  Mark = 4,
}
