/**
 * A list of any length of which only the visible rows exist.
 *
 * Heights are estimated until a row was measured. Rows stand in normal flow inside a block that is moved to the first
 * visible one. While the person is at the end, the end stays in view; elsewhere, what they read does not move.
 */

import type { ReadonlySignal } from "@preact/signals";
import { useSignal } from "@preact/signals";
import type { ComponentChildren, VNode } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { isHidden, ItemRow } from "./items";
import type { Item } from "./protocol";

export interface Source {
  readonly length: ReadonlySignal<number>;
  readonly changed: ReadonlySignal<number>;
  readonly items: readonly (Item | undefined)[];
  want(first: number, last: number): void;
}

const GUESS = 56;
const AROUND = 500; // pixels above and below the view that exist, too
const NEAR = 40;

class Heights {
  private readonly known = new Map<number, number>(); // by the item's place
  private offsets = new Float64Array(1);
  private stale = true;
  private length = 0;

  constructor(private readonly source: Source) {}

  refresh(): void {
    this.stale = true;
  }

  private of(at: number): number {
    const item = this.source.items[at];
    if (item && isHidden(item)) {
      this.known.set(at, 0); // also when the item is let go
      return 0;
    }
    return this.known.get(at) ?? GUESS;
  }

  set(at: number, height: number): number {
    const by = height - this.of(at);
    if (by) {
      this.known.set(at, height);
      this.stale = true;
    }
    return by;
  }

  /** Where each row begins, and the end of the last one. */
  all(): Float64Array {
    const length = this.source.length.peek();
    if (!this.stale && length === this.length) return this.offsets;
    if (this.offsets.length < length + 1) this.offsets = new Float64Array(Math.ceil((length + 1) * 1.5));
    let sum = 0;
    for (let at = 0; at < length; at++) {
      this.offsets[at] = sum;
      sum += this.of(at);
    }
    this.offsets[length] = sum;
    this.length = length;
    this.stale = false;
    return this.offsets;
  }

  /** The row at a height. */
  at(height: number): number {
    const offsets = this.all();
    let low = 0;
    let high = this.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (offsets[middle + 1]! <= height) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

export function TimelineList({ source, tail, label }: { source: Source; tail?: ComponentChildren; label: string }): VNode {
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  const top = useSignal(0);
  const height = useSignal(0);
  const measured = useSignal(0);
  const away = useSignal(false);
  const heights = useMemo(() => new Heights(source), [source]);
  const rows = useMemo(() => new Map<Element, number>(), [source]);

  const observer: ResizeObserver = useMemo(
    () =>
      new ResizeObserver((entries) => {
        let above = 0;
        let any = false;
        const first = heights.at(top.peek());
        for (const entry of entries) {
          const at = rows.get(entry.target);
          if (at === undefined) continue;
          if (!entry.target.isConnected) {
            rows.delete(entry.target); // it left the view: its height of 0 is none
            observer.unobserve(entry.target);
            continue;
          }
          const by = heights.set(at, entry.borderBoxSize[0]?.blockSize ?? 0);
          any ||= by !== 0;
          if (at < first) above += by;
        }
        if (!any) return;
        if (above && !atEnd.current && box.current) box.current.scrollTop += above;
        measured.value++;
      }),
    [source],
  );
  useEffect(() => () => observer.disconnect(), [observer]);

  const length = source.length.value;
  void source.changed.value;
  void measured.value;
  heights.refresh();
  const offsets = heights.all();
  const total = offsets[length] ?? 0;
  const from = atEnd.current ? Math.max(0, total - height.value) : top.value;
  const first = Math.min(heights.at(Math.max(0, from - AROUND)), Math.max(0, length - 1));
  const last = Math.min(length, heights.at(from + height.value + AROUND) + 1);
  if (length) source.want(first, Math.max(first, last - 1));

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const seen = new ResizeObserver(() => {
      height.value = element.clientHeight;
      if (atEnd.current) element.scrollTop = element.scrollHeight;
    });
    seen.observe(element);
    height.value = element.clientHeight;
    return () => seen.disconnect();
  }, []);
  useLayoutEffect(() => {
    if (atEnd.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  });

  const scrolled = (): void => {
    const element = box.current;
    if (!element) return;
    atEnd.current = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR;
    away.value = !atEnd.current;
    top.value = element.scrollTop;
  };
  const mount = (element: Element | null, at: number): void => {
    if (!element || rows.get(element) === at) return;
    rows.set(element, at);
    observer.observe(element);
  };

  const shown: VNode[] = [];
  for (let at = first; at < last; at++) {
    const item = source.items[at];
    if (item && isHidden(item)) continue;
    shown.push(
      <article
        key={at}
        class="row"
        aria-posinset={at + 1}
        aria-setsize={length}
        aria-label={item ? undefined : "Loading"}
        ref={(element) => mount(element, at)}
      >
        {item ? <ItemRow item={item} /> : <div class="ghost" />}
      </article>,
    );
  }

  return (
    <div class="timeline-frame">
      <div class="timeline" ref={box} onScroll={scrolled} tabIndex={0} role="feed" aria-label={label} aria-busy={false}>
        <div class="timeline-inner">
          <div role="presentation" class="rows" style={{ paddingTop: `${offsets[first] ?? 0}px`, minHeight: `${total}px` }}>
            {shown}
          </div>
          {tail ? <article class="row tail">{tail}</article> : null}
        </div>
      </div>
      {away.value ? (
        <button
          class="to-end"
          type="button"
          onClick={() => {
            atEnd.current = true;
            away.value = false;
            if (box.current) box.current.scrollTop = box.current.scrollHeight;
          }}
        >
          ↓ Latest
        </button>
      ) : null}
    </div>
  );
}
