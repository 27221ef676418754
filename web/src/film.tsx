/**
 * A task as a film: scrub to any second, and see what was said, what was changed and what the terminals showed.
 *
 * timeline, facts, recordings → Reel ─at a second→ items until then · files as changed until then · terminals
 *
 * Everything has a time: facts by the log, output by the recordings of the terminals (asciicast). Long waits are cut
 * short unless the person wants them. A terminal at a second is what its recording had printed by then. To go back, it
 * is drawn anew from at most half a megabyte before.
 */

import { signal, useSignal } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { get, getBytes, ServerError } from "./connection";
import { Diff } from "./diff";
import { duration } from "./format";
import { detailsOf, isHidden, printed, TaskContext } from "./items";
import type { Item, Task, TaskRecord } from "./protocol";
import { toTask } from "./routes";
import { Screen } from "./screens";
import { tasks, tell } from "./store";
import { TimelineList, type Source } from "./timeline";

const LONGEST_WAIT = 3; // seconds of film for any wait
const REDRAWN = 512 * 1024; // characters of a recording, at most, to draw a terminal anew
const MOST_RECORDINGS = 50;
const SPEEDS = [0.5, 1, 2, 4, 16] as const;
const RELOAD = 2000; // ms between two looks at a task that runs
const FILES = "files";

/** What a terminal printed, or its new size, at a time. */
export interface Shown {
  at: number;
  text: string;
  size: { rows: number; columns: number } | null;
}

/** One terminal. `before[n]`: how many characters come before the event n; `full[n]`: where its full-screen program began. */
export interface Recording {
  id: string;
  label: string;
  rows: number;
  columns: number;
  events: Shown[];
  before: number[];
  full: number[];
}

interface Change {
  at: number;
  path: string;
  diff: string;
  isNew: boolean;
  gone: boolean;
}

interface Reel {
  items: Item[];
  recordings: Recording[];
  changes: Change[];
  moments: number[];
}

/** A moment of real time and its place in the film. */
interface Cut {
  real: number;
  film: number;
}

/** PURE: real moments to film time; no wait is longer than `longest`. */
export function cutWaits(moments: number[], longest: number): { cuts: Cut[]; length: number } {
  const cuts: Cut[] = [];
  let film = 0;
  let before = moments[0] ?? 0;
  for (const real of moments) {
    film += Math.min(real - before, longest);
    cuts.push({ real, film });
    before = real;
  }
  return { cuts, length: Math.ceil(film * 100) / 100 }; // the scrubber moves by hundredths
}

/** PURE: how many of them are at or before a value. */
export function until<T>(sorted: readonly T[], value: number, of: (each: T) => number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (of(sorted[middle]!) <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** PURE: the real time at a second of the film. */
export function realAt(cuts: Cut[], film: number): number {
  const next = until(cuts, film, (cut) => cut.film);
  const before = cuts[next - 1] ?? cuts[0];
  const after = cuts[next];
  if (!before || !after) return before?.real ?? 0;
  const part = (film - before.film) / Math.max(after.film - before.film, 1e-9);
  return before.real + part * (after.real - before.real);
}

/** PURE: the second of the film at a real time. */
export function filmAt(cuts: Cut[], real: number): number {
  const next = until(cuts, real, (cut) => cut.real);
  const before = cuts[next - 1];
  const after = cuts[next];
  if (!before || !after) return before?.film ?? 0;
  return before.film + ((real - before.real) / Math.max(after.real - before.real, 1e-9)) * (after.film - before.film);
}

/** PURE: a recording with what it takes to begin in its middle. */
export function indexed(of: Omit<Recording, "before" | "full">): Recording {
  const before: number[] = [];
  const full: number[] = [];
  let sum = 0;
  let began = -1;
  of.events.forEach(({ text }, at) => {
    before.push(sum);
    full.push(began);
    sum += text.length;
    const on = text.lastIndexOf("\x1b[?1049h");
    const off = text.lastIndexOf("\x1b[?1049l");
    if (on > off) began = began < 0 ? at : began;
    else if (off > on) began = -1;
  });
  return { ...of, before, full };
}

/** PURE: from which event on a terminal is drawn, to show it before the event `end`. */
export function drawnFrom(recording: Recording, end: number): number {
  const { before, full, events } = recording;
  if (!end) return 0;
  const last = before[end - 1]! + events[end - 1]!.text.length;
  const start = until(before, last - REDRAWN, (each) => each);
  const from = Math.min(start, end - 1);
  return full[from]! >= 0 ? full[from]! : from;
}

/** PURE: a terminal from an asciicast file. */
export function readCast(id: string, text: string): Recording {
  const [head, ...lines] = text.split("\n");
  const header = JSON.parse(head ?? "{}") as { timestamp?: number; width?: number; height?: number; title?: string };
  const events: Shown[] = [];
  for (const line of lines) {
    if (!line.endsWith("]")) continue; // the last one is just being written
    const [at, kind, data] = JSON.parse(line) as [number, string, string];
    const size = kind === "r" ? /^(\d+)x(\d+)$/.exec(data) : null;
    if (kind === "o") events.push({ at: (header.timestamp ?? 0) + at, text: data, size: null });
    else if (size) events.push({ at: (header.timestamp ?? 0) + at, text: "", size: { columns: Number(size[1]), rows: Number(size[2]) } });
  }
  return indexed({ id, label: header.title ?? id, rows: header.height ?? 24, columns: header.width ?? 80, events });
}

/** PURE: commands that ran without a terminal, or whose recording is gone, as a terminal shows them. */
export function fromResults(items: Item[], recorded: ReadonlySet<string>): Recording[] {
  const found = new Map<string, Shown[]>();
  for (const item of items) {
    const command = item.kind === "tool" ? detailsOf(item.about).command : undefined;
    const label = command?.terminal ?? "no shell";
    if (!command || recorded.has(label)) continue;
    const line = command.line.replace(/[\x00-\x09\x0b-\x1f\x7f]/g, "").replaceAll("\n", "\r\n  ");
    const output = printed(item.about).replace(/\r?\n/g, "\r\n");
    const events = found.get(label) ?? [];
    events.push({ at: item.at, text: `\x1b[33m❯\x1b[0m \x1b[1m${line}\x1b[0m\r\n`, size: null });
    events.push({ at: item.about?.at ?? item.at, text: `${output}${output.endsWith("\n") || !output ? "" : "\r\n"}\x1b[0m`, size: null });
    found.set(label, events);
  }
  return [...found].map(([label, events]) => indexed({ id: label, label, rows: 32, columns: 100, events: events.sort((one, other) => one.at - other.at) }));
}

/** PURE: what was changed in files, in order: by tools with a diff, by commands without. */
export function changesOf(items: Item[], records: TaskRecord[], workspace: string): Change[] {
  const found: Change[] = [];
  const byTools = new Map<string, [number, number][]>();
  for (const item of items) {
    if (item.kind !== "tool" || item.state !== "done") continue;
    for (const file of detailsOf(item.about).files ?? []) {
      const at = item.about?.at ?? item.at;
      byTools.set(file.path, [...(byTools.get(file.path) ?? []), [item.at, at + 1]]);
      found.push({ at, path: file.name ?? file.path, diff: file.diff ?? "", isNew: file.operation === "created", gone: file.operation === "deleted" });
    }
  }
  for (const record of records) {
    if (record.kind !== "files_changed") continue;
    const at = record.at ?? 0;
    for (const file of (record["files"] as { path: string; before: string | null; after: string | null }[] | undefined) ?? []) {
      if (byTools.get(file.path)?.some(([from, to]) => from <= at && at <= to)) continue;
      const path = file.path.startsWith(`${workspace}/`) ? file.path.slice(workspace.length + 1) : file.path;
      found.push({ at, path, diff: "", isNew: file.before === null, gone: file.after === null });
    }
  }
  return found.sort((one, other) => one.at - other.at);
}

async function load(task: string, workspace: string): Promise<Reel> {
  const path = `/api/tasks/${task}`;
  const [{ items }, { records }, listed] = await Promise.all([
    get<{ items: Item[] }>(`${path}/timeline?limit=100000`),
    get<{ records: TaskRecord[] }>(`${path}/records?limit=100000`),
    get<{ recordings: { name: string }[] }>(`${path}/recordings`),
  ]);
  const recordings = await Promise.all(
    listed.recordings.slice(-MOST_RECORDINGS).map(async ({ name }) => {
      const { data } = await getBytes(`${path}/recordings/${encodeURIComponent(name)}`);
      return readCast(name, new TextDecoder().decode(data));
    }),
  );
  recordings.push(...fromResults(items, new Set(recordings.map((each) => each.label))));
  const moments = [...items.flatMap((item) => [item.at, item.about?.at ?? item.at]), ...recordings.flatMap((each) => each.events.map(({ at }) => at))];
  return {
    items,
    recordings,
    changes: changesOf(items, records, workspace),
    moments: [...new Set(moments.filter((at) => at > 0))].sort((one, other) => one - other),
  };
}

/** The timeline as it was at a time. */
class Past implements Source {
  readonly length = signal(0);
  readonly changed = signal(0);
  readonly items: (Item | undefined)[] = [];

  constructor(private readonly all: Item[]) {}

  at(real: number): void {
    let length = 0;
    for (const item of this.all) {
      if (item.at > real + 0.001) break;
      const over = (item.about?.at ?? item.at) <= real + 0.001;
      const title = item.text.replace(/^Ran /, "Running ").replace(/^Edited /, "Editing ");
      const unanswered = item.answered && Number(item.answer?.at ?? 0) > real + 0.001;
      if (item.kind === "tool" && !over) this.items[length++] = { ...item, text: title, state: "running", about: null };
      else this.items[length++] = unanswered ? { ...item, answered: false, answer: null } : item;
    }
    this.items.length = length;
    this.length.value = length;
    this.changed.value++;
  }

  want(): void {}
}

export function Film({ task }: { task: string }): VNode {
  const reel = useSignal<Reel | null>(null);
  const failed = useSignal("");
  const known = tasks.value.get(task);
  const running = known?.running ?? false;
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let left = false;
    const look = (): void => {
      load(task, known?.workspace ?? "")
        .then((loaded) => void (left || (reel.value = loaded)))
        .catch((error: unknown) => {
          if (left) return;
          failed.value = error instanceof ServerError ? error.what : "The replay could not be loaded.";
          if (error instanceof ServerError) tell(error.what, error.hint);
        })
        .finally(() => {
          if (!left && running) timer = setTimeout(look, RELOAD);
        });
    };
    look();
    return () => {
      left = true;
      clearTimeout(timer);
    };
  }, [task, running]);
  return (
    <TaskContext.Provider value={task}>
      <main class="film" aria-label={`Replay of ${known?.title ?? "a task"}`}>
        <header class="task-head">
          <div class="task-line">
            <h1>Replay: {known?.title ?? task}</h1>
            <span class="grow" />
            <a class="button" href={toTask(task)}>
              Back to the task
            </a>
          </div>
        </header>
        {reel.value ? <Player reel={reel.value} task={known} /> : <p class="blank">{failed.value || "Loading…"}</p>}
      </main>
    </TaskContext.Provider>
  );
}

/** PURE: a place of the film, as people read it. */
const place = (seconds: number): string => {
  const whole = Math.floor(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
};

const clockOf = (at: number): string => new Date(at * 1000).toLocaleTimeString();

function Player({ reel, task }: { reel: Reel; task: Task | undefined }): VNode {
  const at = useSignal(0); // seconds of film
  const playing = useSignal(false);
  const speed = useSignal<number>(1);
  const cutting = useSignal(true);
  const { cuts, length } = useMemo(() => cutWaits(reel.moments, cutting.value ? LONGEST_WAIT : Infinity), [reel, cutting.value]);
  const past = useMemo(() => new Past(reel.items), [reel]);
  const ticks = useMemo(() => reel.items.filter((item) => !isHidden(item) && item.kind !== "api_response"), [reel]);
  const real = realAt(cuts, at.value);

  useEffect(() => past.at(real), [real, past]);
  useEffect(() => {
    if (!playing.value) return;
    let last = performance.now();
    let frame = requestAnimationFrame(function step(now) {
      at.value = Math.min(length, at.value + ((now - last) / 1000) * speed.value);
      last = now;
      if (at.value >= length) playing.value = false;
      else frame = requestAnimationFrame(step);
    });
    return () => cancelAnimationFrame(frame);
  }, [playing.value, speed.value, length]);

  const seek = (film: number): void => {
    playing.value = false;
    at.value = Math.max(0, Math.min(length, film));
  };
  const play = (): void => {
    if (!playing.value && at.value >= length) at.value = 0;
    playing.value = !playing.value;
  };
  const step = (by: 1 | -1): void => {
    const places = ticks.map((item) => filmAt(cuts, item.at));
    const to = by > 0 ? places.find((each) => each > at.value + 0.001) : places.findLast((each) => each < at.value - 0.001);
    seek(to ?? (by > 0 ? length : 0));
  };
  const faster = (by: 1 | -1): void => {
    const now = SPEEDS.findIndex((each) => each === speed.value);
    speed.value = SPEEDS[Math.max(0, Math.min(SPEEDS.length - 1, now + by))] ?? 1;
  };
  const keys = (event: KeyboardEvent): void => {
    const target = event.target as HTMLElement;
    if (event.ctrlKey || event.metaKey || event.altKey || target.closest("select, [role=tablist], a")) return;
    if (event.key === " " && target.closest("button, [type=checkbox]")) return; // it presses that
    const acts: Record<string, () => void> = {
      " ": play,
      ArrowLeft: () => seek(at.value - (event.shiftKey ? 10 : 1)),
      ArrowRight: () => seek(at.value + (event.shiftKey ? 10 : 1)),
      ",": () => step(-1),
      ".": () => step(1),
      "<": () => faster(-1),
      ">": () => faster(1),
    };
    const act = acts[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  };
  const bar = useRef<HTMLInputElement>(null);
  useEffect(() => bar.current?.focus({ preventScroll: true }), []);

  return (
    <div class="film-player" onKeyDown={keys}>
      <div class="film-stage">
        <TimelineList source={past} label="Timeline at this moment" />
        <Stage reel={reel} real={real} />
      </div>
      <div class="film-bar" role="group" aria-label="Playback">
        <button class="primary" type="button" onClick={play} title="Space">
          {playing.value ? "Pause" : "Play"}
        </button>
        <button class="quiet" type="button" onClick={() => step(-1)} title="Previous event (,)" aria-label="Previous event">
          ‹
        </button>
        <button class="quiet" type="button" onClick={() => step(1)} title="Next event (.)" aria-label="Next event">
          ›
        </button>
        <div class="scrubber">
          <div class="ticks" aria-hidden="true">
            {ticks.slice(0, 400).map((item) => (
              <span key={item.n} class={`tick-mark ${item.kind === "tool" ? item.state : "say"}`} style={{ left: `${(100 * filmAt(cuts, item.at)) / Math.max(length, 0.001)}%` }} />
            ))}
          </div>
          <input
            ref={bar}
            type="range"
            min={0}
            max={length}
            step={0.01}
            value={at.value}
            aria-label="Place in the replay"
            aria-valuetext={`${place(at.value)} of ${place(length)}, ${clockOf(real)}`}
            onInput={(event) => seek(Number(event.currentTarget.value))}
          />
        </div>
        <span class="mono faint film-time" title={`${duration(at.value)} of ${duration(length)}`}>
          {place(at.value)} / {place(length)} · {clockOf(real)}
        </span>
        {task?.running ? <span class="state running">running</span> : null}
        <label title="Slower (<), faster (>)">
          <span class="hidden-text">Speed</span>
          <select value={speed.value} onChange={(event) => (speed.value = Number(event.currentTarget.value))}>
            {SPEEDS.map((each) => (
              <option key={each} value={each}>
                {each}×
              </option>
            ))}
          </select>
        </label>
        <label class="check" title={`Waits are cut to ${LONGEST_WAIT} s`}>
          <input
            type="checkbox"
            checked={cutting.value}
            onChange={(event) => {
              const longest = event.currentTarget.checked ? LONGEST_WAIT : Infinity;
              at.value = filmAt(cutWaits(reel.moments, longest).cuts, real); // the same moment
              cutting.value = event.currentTarget.checked;
            }}
          />
          cut waits
        </label>
      </div>
    </div>
  );
}

/** The terminals and the files at a time. What happened last is in front until the person chooses. */
function Stage({ reel, real }: { reel: Reel; real: number }): VNode {
  const chosen = useSignal<string | null>(null);
  const changes = reel.changes.slice(0, until(reel.changes, real, (change) => change.at));
  let front: string | undefined = reel.recordings[0]?.id;
  let latest = changes.findLast((change) => change.diff)?.at ?? 0; // a command's changes are found at its end
  if (latest) front = FILES;
  for (const { id, events } of reel.recordings) {
    const last = events[until(events, real, (event) => event.at) - 1]?.at ?? 0;
    if (last >= latest && last) [front, latest] = [id, last];
  }
  const ids = [...reel.recordings.map(({ id }) => id), ...(reel.changes.length ? [FILES] : [])];
  const current = chosen.value ?? front;
  const recording = reel.recordings.find(({ id }) => id === current);
  const keys = (event: KeyboardEvent): void => {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!by || !ids.length) return;
    event.preventDefault();
    const next = ids[(ids.indexOf(current ?? "") + by + ids.length) % ids.length]!;
    chosen.value = next;
    document.getElementById(`film-${next}`)?.focus();
  };
  const tab = (id: string, label: string): VNode => (
    <button
      key={id}
      id={`film-${id}`}
      class="tab"
      type="button"
      role="tab"
      aria-selected={id === current}
      aria-controls="film-panel"
      tabIndex={id === current ? 0 : -1}
      onClick={() => (chosen.value = id)}
    >
      <span class={`dot ${id === front ? "running" : "idle"}`} aria-hidden="true" />
      {label}
    </button>
  );
  return (
    <section class="terminals" aria-label="Terminals and files at this moment">
      <div class="tabs-bar">
        <div class="tabs" role="tablist" aria-label="Terminals and files" onKeyDown={keys}>
          {reel.recordings.map(({ id, label }) => tab(id, label))}
          {reel.changes.length ? tab(FILES, `Files (${new Set(changes.map(({ path }) => path)).size})`) : null}
        </div>
        {chosen.value ? (
          <button class="quiet" type="button" title="Show what happened last" onClick={() => (chosen.value = null)}>
            Follow
          </button>
        ) : null}
      </div>
      <div class="film-panel" id="film-panel" role="tabpanel" aria-labelledby={current ? `film-${current}` : undefined}>
        {recording ? <FilmScreen key={recording.id} recording={recording} real={real} /> : null}
        {current === FILES ? <FilmFiles changes={changes} /> : null}
        {current ? null : <p class="blank">No terminal and no change of a file in this task.</p>}
      </div>
    </section>
  );
}

function FilmFiles({ changes }: { changes: Change[] }): VNode {
  if (!changes.length) return <p class="blank">No file was changed yet.</p>;
  return (
    <div class="film-files" tabIndex={0} role="region" aria-label="Changes of files, newest first">
      {changes.toReversed().map((change, at) => (
        <div key={changes.length - at}>
          <p class="faint">
            {clockOf(change.at)}
            {change.diff ? "" : " · by a command"}
          </p>
          {change.diff ? (
            <Diff path={change.path} diff={change.diff} isNew={change.isNew} />
          ) : (
            <p>
              <code>{change.path}</code> {change.isNew ? "is new" : change.gone ? "is gone" : "was changed"}
            </p>
          )}
        </div>
      ))}
    </div>
  );
}

const encoder = new TextEncoder();

function FilmScreen({ recording, real }: { recording: Recording; real: number }): VNode {
  const box = useRef<HTMLDivElement>(null);
  const screen = useMemo(() => new Screen(recording.label, 0, false), []);
  const drawn = useRef<number | null>(null); // events
  useEffect(() => {
    if (box.current) screen.show(box.current);
    return () => screen.dispose();
  }, [screen]);
  useEffect(() => {
    const { events, before } = recording;
    const end = until(events, real, (event) => event.at);
    let from = drawn.current;
    if (from === null || end < from || (before[end - 1] ?? 0) - (before[from] ?? 0) > REDRAWN) {
      from = drawnFrom(recording, end);
      const size = events.slice(0, from).findLast((event) => event.size)?.size ?? recording;
      screen.clear(size.rows, size.columns);
    }
    let text = "";
    for (const event of events.slice(from, end)) {
      if (!event.size) text += event.text;
      else {
        screen.draw(encoder.encode(text));
        screen.resizeLater(event.size.rows, event.size.columns);
        text = "";
      }
    }
    if (text) screen.draw(encoder.encode(text));
    drawn.current = end;
  }, [recording, real]);
  return <div class="terminal-place" ref={box} />;
}
