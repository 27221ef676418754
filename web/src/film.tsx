/**
 * A task as a film: scrub to any second, and see what was said, what was changed and what the terminals showed.
 *
 * The facts have times. A command's output has times where its facts do, and is spread evenly between them. Long
 * waits are cut short.
 */

import { computed, signal, useSignal } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { get, getBytes, ServerError } from "./connection";
import { clock } from "./format";
import { detailsOf, isHidden, TaskContext } from "./items";
import type { Item, TaskRecord } from "./protocol";
import { toTask } from "./routes";
import { Screen } from "./screens";
import { tasks, tell } from "./store";
import { TimelineList, type Source } from "./timeline";

const LONGEST_WAIT = 3; // seconds of film for any wait
const MOST_OUTPUT = 400_000;
const SPEEDS = [1, 4, 16] as const;

/** One command in a terminal: when which of its bytes were there. */
interface Clip {
  call: string;
  terminal: string;
  command: string;
  begin: number;
  end: number;
  steps: [at: number, offset: number][];
  printed: number;
  data: Uint8Array;
}

interface Reel {
  items: Item[];
  clips: Clip[];
  cuts: Cut[];
  length: number;
}

/** A stretch of real time and its place in the film. */
interface Cut {
  real: number;
  film: number;
}

/** PURE: real moments to film time, with long waits cut short. */
export function cutWaits(moments: number[]): { cuts: Cut[]; length: number } {
  const sorted = [...new Set(moments)].sort((one, other) => one - other);
  const cuts: Cut[] = [];
  let film = 0;
  let before = sorted[0] ?? 0;
  for (const real of sorted) {
    film += Math.min(real - before, LONGEST_WAIT);
    cuts.push({ real, film });
    before = real;
  }
  return { cuts, length: film };
}

/** PURE: the real time at a second of the film. */
export function realAt(cuts: Cut[], film: number): number {
  let before = cuts[0];
  for (const cut of cuts) {
    if (cut.film > film && before) {
      const part = (film - before.film) / (cut.film - before.film);
      return before.real + part * (cut.real - before.real);
    }
    before = cut;
  }
  return before?.real ?? 0;
}

/** PURE: how many bytes of a command's output were there at a time. */
export function bytesAt(clip: Clip, at: number): number {
  if (at >= clip.end) return clip.data.length;
  let from: [number, number] = [clip.begin, 0];
  for (const step of [...clip.steps, [clip.end, clip.data.length] as [number, number]]) {
    if (step[0] > at) {
      const part = (at - from[0]) / Math.max(step[0] - from[0], 1e-9);
      return Math.max(0, Math.floor(from[1] + part * (step[1] - from[1])));
    }
    from = step;
  }
  return clip.data.length;
}

async function load(task: string): Promise<Reel> {
  const [{ items }, { records }] = await Promise.all([
    get<{ items: Item[] }>(`/api/tasks/${task}/timeline?limit=100000`),
    get<{ records: TaskRecord[] }>(`/api/tasks/${task}/records?limit=100000`),
  ]);
  const started = new Map<string, number>();
  const steps = new Map<string, [number, number][]>();
  for (const record of records) {
    const call = String(record["call"] ?? "");
    if (record.kind === "tool_started") started.set(call, record.at ?? 0);
    if (record.kind === "command_output") steps.set(call, [...(steps.get(call) ?? []), [record.at ?? 0, Number(record["offset"])]]);
  }
  const clips: Clip[] = [];
  for (const item of items) {
    const command = item.kind === "tool" ? detailsOf(item.about).command : undefined;
    if (!command || !item.call) continue;
    const end = item.about?.at ?? item.at;
    clips.push({
      call: item.call,
      terminal: command.terminal ?? "no shell",
      command: command.line,
      begin: started.get(item.call) ?? item.at,
      end,
      steps: steps.get(item.call) ?? [],
      printed: command.output_bytes ?? 1,
      data: new Uint8Array(),
    });
  }
  await Promise.all(
    clips.slice(-200).map(async (clip) => {
      if (!clip.printed) return;
      try {
        clip.data = (await getBytes(`/api/tasks/${task}/output/${encodeURIComponent(clip.call)}?size=${MOST_OUTPUT}`)).data;
      } catch (error) {
        if (!(error instanceof ServerError)) throw error; // its spool is gone
      }
    }),
  );
  const moments = [...items.flatMap((item) => [item.at, item.about?.at ?? item.at]), ...clips.flatMap((clip) => clip.steps.map(([at]) => at))];
  const { cuts, length } = cutWaits(moments.filter((at) => at > 0));
  return { items, clips, cuts, length: Math.ceil(length * 20) / 20 }; // the scrubber moves by twentieths
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
      this.items[length++] = over || item.kind !== "tool" ? item : { ...item, text: title, state: "running", about: null };
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
  useEffect(() => {
    load(task)
      .then((loaded) => (reel.value = loaded))
      .catch((error: unknown) => {
        failed.value = error instanceof ServerError ? error.what : "The replay could not be loaded.";
        if (error instanceof ServerError) tell(error.what, error.hint);
      });
  }, [task]);
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
        {reel.value ? <Player reel={reel.value} /> : <p class="blank">{failed.value || "Loading…"}</p>}
      </main>
    </TaskContext.Provider>
  );
}

function Player({ reel }: { reel: Reel }): VNode {
  const at = useSignal(0);
  const playing = useSignal(false);
  const speed = useSignal<number>(1);
  const past = useMemo(() => new Past(reel.items), [reel]);
  const real = useMemo(() => computed(() => realAt(reel.cuts, at.value)), [reel]);
  const ticks = useMemo(() => reel.items.filter((item) => !isHidden(item) && item.kind !== "api_response"), [reel]);

  useEffect(() => past.at(real.value), [real.value, past]);
  useEffect(() => {
    if (!playing.value) return;
    let last = performance.now();
    let frame = requestAnimationFrame(function step(now) {
      at.value = Math.min(reel.length, at.value + ((now - last) / 1000) * speed.value);
      last = now;
      if (at.value >= reel.length) playing.value = false;
      else frame = requestAnimationFrame(step);
    });
    return () => cancelAnimationFrame(frame);
  }, [playing.value, speed.value]);

  const play = (): void => {
    if (!playing.value && at.value >= reel.length) at.value = 0;
    playing.value = !playing.value;
  };
  const filmOf = (time: number): number => {
    const cut = reel.cuts.find((each) => each.real >= time);
    return cut?.film ?? reel.length;
  };
  return (
    <>
      <div class="film-stage">
        <TimelineList source={past} label="Timeline at this moment" />
        <FilmTerminals clips={reel.clips} real={real.value} />
      </div>
      <div class="film-bar">
        <button class="primary" type="button" onClick={play}>
          {playing.value ? "Pause" : "Play"}
        </button>
        <div class="scrubber">
          <div class="ticks" aria-hidden="true">
            {ticks.slice(0, 400).map((item) => (
              <span key={item.n} class={`tick-mark ${item.kind === "tool" ? item.state : "say"}`} style={{ left: `${(100 * filmOf(item.at)) / Math.max(reel.length, 0.001)}%` }} />
            ))}
          </div>
          <input
            type="range"
            min={0}
            max={reel.length}
            step={0.05}
            value={at.value}
            aria-label="Place in the replay"
            aria-valuetext={clock(real.value)}
            onInput={(event) => {
              playing.value = false;
              at.value = Number(event.currentTarget.value);
            }}
          />
        </div>
        <span class="mono faint film-time">
          {at.value.toFixed(1)} / {reel.length.toFixed(1)} s
        </span>
        <label>
          <span class="hidden-text">Speed</span>
          <select value={speed.value} onChange={(event) => (speed.value = Number(event.currentTarget.value))}>
            {SPEEDS.map((each) => (
              <option key={each} value={each}>
                {each}×
              </option>
            ))}
          </select>
        </label>
      </div>
    </>
  );
}

function FilmTerminals({ clips, real }: { clips: Clip[]; real: number }): VNode {
  const names = [...new Set(clips.map((clip) => clip.terminal))];
  const latest = clips.findLast((clip) => clip.begin <= real);
  const chosen = useSignal<string | null>(null);
  const current = chosen.value ?? latest?.terminal ?? names[0];
  return (
    <section class="terminals" aria-label="Terminals at this moment">
      <div class="tabs-bar">
        <div class="tabs" role="tablist" aria-label="Terminals">
          {names.map((name) => (
            <button key={name} class="tab" type="button" role="tab" aria-selected={name === current} onClick={() => (chosen.value = name)}>
              <span class={`dot ${latest?.terminal === name && latest.end > real ? "running" : "idle"}`} aria-hidden="true" />
              {name}
            </button>
          ))}
        </div>
      </div>
      {current ? <FilmScreen key={current} clips={clips.filter((clip) => clip.terminal === current)} real={real} /> : <p class="blank">No terminal in this task.</p>}
    </section>
  );
}

const encoder = new TextEncoder();

/** PURE: all bytes that a terminal of the film shows at a time. */
function shownAt(clips: Clip[], real: number): Uint8Array {
  const parts: Uint8Array[] = [];
  for (const clip of clips) {
    if (clip.begin > real) break;
    const prompt = `\x1b[33m❯\x1b[0m \x1b[1m${clip.command.replace(/[\x00-\x09\x0b-\x1f\x7f]/g, "").replaceAll("\n", "\r\n  ")}\x1b[0m\r\n`;
    parts.push(encoder.encode(prompt), clip.data.subarray(0, bytesAt(clip, real)));
    if (clip.end <= real) parts.push(encoder.encode("\x1b[0m\r\n"));
  }
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function FilmScreen({ clips, real }: { clips: Clip[]; real: number }): VNode {
  const place = useRef<HTMLDivElement>(null);
  const screen = useMemo(() => new Screen("replay", 0, false), []);
  const drawn = useRef(0);
  useEffect(() => {
    if (place.current) screen.show(place.current);
    screen.clear(32, 100);
    return () => screen.dispose();
  }, [screen]);
  useEffect(() => {
    const all = shownAt(clips, real);
    if (all.length < drawn.current) {
      screen.clear(32, 100);
      drawn.current = 0;
    }
    screen.draw(crlf(all.subarray(drawn.current)));
    drawn.current = all.length;
  }, [real]);
  return <div class="terminal-place" ref={place} />;
}

/** Output of a pipe has bare line ends. */
function crlf(data: Uint8Array): Uint8Array {
  if (!data.includes(10)) return data;
  const out: number[] = [];
  data.forEach((byte, at) => {
    if (byte === 10 && data[at - 1] !== 13) out.push(13);
    out.push(byte);
  });
  return Uint8Array.from(out);
}
