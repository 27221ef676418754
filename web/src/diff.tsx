/** A unified diff, drawn as it is or side by side. */

import { signal } from "@preact/signals";
import type { ComponentChildren, VNode } from "preact";

interface Row {
  sort: "same" | "added" | "removed" | "head";
  text: string;
  old: number | null;
  new: number | null;
}

interface Pair {
  left: Row | null;
  right: Row | null;
}

const MOST = 2000;
const stored = localStorage.getItem("tarmac.diff");
export const sideBySide = signal(stored ? stored === "side" : innerWidth > 1700);
sideBySide.subscribe((side) => localStorage.setItem("tarmac.diff", side ? "side" : "unified"));

/** PURE: the rows of a unified diff; of a new file's content, all rows are added. */
export function rowsOf(diff: string, isNew: boolean): Row[] {
  const lines = diff.replace(/\n$/, "").split("\n");
  if (isNew && !lines.some((line) => line.startsWith("@@"))) {
    return lines.map((text, at) => ({ sort: "added", text, old: null, new: at + 1 }));
  }
  const rows: Row[] = [];
  let before = 1;
  let after = 1;
  for (const line of lines) {
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)$/.exec(line);
    if (hunk) {
      before = Number(hunk[1]);
      after = Number(hunk[2]);
      rows.push({ sort: "head", text: hunk[3]?.trim() ?? "", old: null, new: null });
    } else if (/^(---|\+\+\+|diff |index )/.test(line) && (!rows.length || rows.at(-1)?.sort === "head")) continue;
    else if (line.startsWith("+")) rows.push({ sort: "added", text: line.slice(1), old: null, new: after++ });
    else if (line.startsWith("-")) rows.push({ sort: "removed", text: line.slice(1), old: before++, new: null });
    else if (!line.startsWith("\\")) rows.push({ sort: "same", text: line.slice(1), old: before++, new: after++ });
  }
  return rows;
}

/** PURE: removed and added rows of the same place, beside each other. */
export function pairs(rows: Row[]): Pair[] {
  const out: Pair[] = [];
  for (let at = 0; at < rows.length; ) {
    const row = rows[at]!;
    if (row.sort === "same" || row.sort === "head") {
      out.push({ left: row, right: row });
      at++;
      continue;
    }
    const removed: Row[] = [];
    const added: Row[] = [];
    while (rows[at]?.sort === "removed") removed.push(rows[at++]!);
    while (rows[at]?.sort === "added") added.push(rows[at++]!);
    for (let line = 0; line < Math.max(removed.length, added.length); line++) {
      out.push({ left: removed[line] ?? null, right: added[line] ?? null });
    }
  }
  return out;
}

/** What differs between two lines: the part between their common beginning and end. */
function marked(text: string, other: string | undefined): ComponentChildren {
  if (other === undefined || !text.trim() || !other.trim()) return text;
  const most = Math.min(text.length, other.length);
  let first = 0;
  while (first < most && text[first] === other[first]) first++;
  let last = 0;
  while (last < most - first && text.at(-1 - last) === other.at(-1 - last)) last++;
  if (first + last < Math.min(text.length, other.length) * 0.3 || first + last >= text.length) return text;
  return [text.slice(0, first), <mark>{text.slice(first, text.length - last)}</mark>, text.slice(text.length - last)];
}

const SIGN = { same: " ", added: "+", removed: "−", head: "" };

function Unified({ rows }: { rows: Row[] }): VNode {
  const partners = new Map<Row, Row>();
  for (const { left, right } of pairs(rows)) {
    if (!left || !right || left === right) continue;
    partners.set(left, right);
    partners.set(right, left);
  }
  return (
    <table class="diff-rows">
      <tbody>
        {rows.map((row, at) =>
          row.sort === "head" ? (
            <tr key={at} class="head">
              <td colSpan={4}>{at ? `⋯ ${row.text}` : row.text}</td>
            </tr>
          ) : (
            <tr key={at} class={row.sort}>
              <td class="number">{row.old}</td>
              <td class="number">{row.new}</td>
              <td class="sign">{SIGN[row.sort]}</td>
              <td class="line">{marked(row.text, partners.get(row)?.text)}</td>
            </tr>
          ),
        )}
      </tbody>
    </table>
  );
}

function Sides({ rows }: { rows: Row[] }): VNode {
  const half = (row: Row | null, other: Row | null, number: number | null | undefined): VNode[] => [
    <td class={`number ${row?.sort ?? "none"}`}>{number}</td>,
    <td class={`line ${row?.sort ?? "none"}`}>{row ? marked(row.text, other && other !== row ? other.text : undefined) : ""}</td>,
  ];
  return (
    <table class="diff-rows sides">
      <tbody>
        {pairs(rows).map(({ left, right }, at) =>
          left?.sort === "head" ? (
            <tr key={at} class="head">
              <td colSpan={4}>{at ? `⋯ ${left.text}` : left.text}</td>
            </tr>
          ) : (
            <tr key={at}>
              {half(left, right, left?.old)}
              {half(right, left, right?.new)}
            </tr>
          ),
        )}
      </tbody>
    </table>
  );
}

export interface FileDiff {
  path: string;
  diff: string;
  isNew?: boolean;
  added?: number;
  removed?: number;
}

export function Diff({ path, diff, isNew = false, added, removed }: FileDiff): VNode {
  const all = rowsOf(diff, isNew);
  const rows = all.slice(0, MOST);
  const plus = added ?? all.filter((row) => row.sort === "added").length;
  const minus = removed ?? all.filter((row) => row.sort === "removed").length;
  return (
    <figure class="diff">
      <figcaption>
        <span class="path">{path}</span>
        {isNew ? <span class="badge">new</span> : null}
        <span class="plus">+{plus}</span>
        <span class="minus">−{minus}</span>
        <button class="quiet" type="button" aria-pressed={sideBySide.value} onClick={() => (sideBySide.value = !sideBySide.value)}>
          {sideBySide.value ? "Unified" : "Side by side"}
        </button>
      </figcaption>
      <div class="diff-scroll" tabIndex={0} role="group" aria-label={`Changes in ${path}`}>
        {sideBySide.value ? <Sides rows={rows} /> : <Unified rows={rows} />}
        {all.length > MOST ? <p class="faint">{all.length - MOST} more lines are not shown here.</p> : null}
      </div>
    </figure>
  );
}
