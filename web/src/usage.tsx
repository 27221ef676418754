/** What was used over time, as a plot of our own. */

import { useSignal } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect } from "preact/hooks";
import { get, ServerError } from "./connection";
import { money, tokens } from "./format";
import type { UsageDay } from "./protocol";
import { tell } from "./store";

interface UsageReply {
  days: UsageDay[];
  models: Record<string, Omit<UsageDay, "day">>;
}

const HIGH = 220;
const LEFT = 44;
const BOTTOM = 24;

/** PURE: every day of the span, also those without use. */
export function filled(days: UsageDay[], span: number, today: Date): UsageDay[] {
  const known = new Map(days.map((each) => [each.day, each]));
  return Array.from({ length: span }, (_, at) => {
    const date = new Date(today);
    date.setDate(today.getDate() - (span - 1 - at));
    const day = `${date.getFullYear()}-${String(date.getMonth() + 1).padStart(2, "0")}-${String(date.getDate()).padStart(2, "0")}`;
    return known.get(day) ?? { day, input: 0, output: 0, cost: 0, requests: 0 };
  });
}

/** PURE: a round number that is at least `most`. */
export function ceiling(most: number): number {
  if (most <= 0) return 1;
  const unit = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 2.5, 5, 10].map((step) => step * unit).find((step) => step >= most) ?? most;
}

export function Usage(): VNode {
  const span = useSignal(30);
  const by = useSignal<"cost" | "tokens" | "requests">("cost");
  const data = useSignal<UsageReply | null>(null);
  useEffect(() => {
    get<UsageReply>(`/api/usage?days=${span.value}`)
      .then((reply) => (data.value = reply))
      .catch((error: unknown) => error instanceof ServerError && tell(error.what, error.hint));
  }, [span.value]);
  const days = data.value ? filled(data.value.days, span.value, new Date()) : [];
  const value = (day: Omit<UsageDay, "day">): number => (by.value === "cost" ? (day.cost ?? 0) : by.value === "tokens" ? day.input + day.output : day.requests);
  const shown = (amount: number): string => (by.value === "cost" ? money(amount) : by.value === "tokens" ? tokens(amount) : String(amount));
  const wide = innerWidth <= 640 ? 340 : 720; // a phone's letters are as large as others
  const top = ceiling(Math.max(0, ...days.map(value)));
  const step = (wide - LEFT) / Math.max(days.length, 1);
  const total = days.reduce((sum, day) => sum + value(day), 0);
  const unpriced = days.reduce((sum, day) => sum + (day.unpriced ?? 0), 0);
  return (
    <main class="page" tabIndex={-1} aria-label="Usage">
      <header class="page-head">
        <h1>Usage</h1>
        <span class="grow" />
        <div class="segments" role="group" aria-label="What is shown">
          {(["cost", "tokens", "requests"] as const).map((each) => (
            <button key={each} type="button" aria-pressed={by.value === each} onClick={() => (by.value = each)}>
              {each[0]!.toUpperCase() + each.slice(1)}
            </button>
          ))}
        </div>
        <div class="segments" role="group" aria-label="Days">
          {[7, 30, 90].map((each) => (
            <button key={each} type="button" aria-pressed={span.value === each} onClick={() => (span.value = each)}>
              {each} days
            </button>
          ))}
        </div>
      </header>
      {data.value ? (
        <>
          <p class="total">
            <strong>{shown(total)}</strong> <span class="faint">in {span.value} days{unpriced && by.value === "cost" ? `, without ${unpriced} requests whose price is unknown` : ""}</span>
          </p>
          <svg class="plot" viewBox={`0 0 ${wide} ${HIGH}`} role="img" aria-label={`${by.value} of the last ${span.value} days, ${shown(total)} in all`}>
            {[0, 0.5, 1].map((part) => (
              <g key={part}>
                <line x1={LEFT} x2={wide} y1={10 + (HIGH - BOTTOM - 10) * (1 - part)} y2={10 + (HIGH - BOTTOM - 10) * (1 - part)} class="grid" />
                <text x={LEFT - 6} y={14 + (HIGH - BOTTOM - 10) * (1 - part)} class="axis end">
                  {shown(top * part)}
                </text>
              </g>
            ))}
            {days.map((day, at) => {
              const high = ((HIGH - BOTTOM - 10) * value(day)) / top;
              const label = at % Math.ceil(days.length / (wide / 90)) === 0;
              return (
                <g key={day.day}>
                  <rect class="bar" x={LEFT + at * step + step * 0.15} width={step * 0.7} y={HIGH - BOTTOM - high} height={high} rx={Math.min(3, step * 0.2)}>
                    <title>{`${day.day}: ${shown(value(day))}`}</title>
                  </rect>
                  {label ? (
                    <text class="axis" x={LEFT + (at + 0.5) * step} y={HIGH - 6}>
                      {day.day.slice(5)}
                    </text>
                  ) : null}
                </g>
              );
            })}
          </svg>
          <h2>Models</h2>
          {Object.keys(data.value.models).length ? null : <p class="faint">No model was asked in these days.</p>}
          <div class="table" hidden={!Object.keys(data.value.models).length} tabIndex={0} role="region" aria-label="Usage by model">
            <table>
              <thead>
                <tr>
                  <th>Model</th>
                  <th class="right">Requests</th>
                  <th class="right">Tokens in</th>
                  <th class="right">Tokens out</th>
                  <th class="right">Cost</th>
                </tr>
              </thead>
              <tbody>
                {Object.entries(data.value.models).map(([name, used]) => (
                  <tr key={name}>
                    <td class="mono">{name}</td>
                    <td class="right">{used.requests}</td>
                    <td class="right">{tokens(used.input)}</td>
                    <td class="right">{tokens(used.output)}</td>
                    <td class="right">{used.unpriced === used.requests ? "unknown" : money(used.cost)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </>
      ) : (
        <p class="faint">Loading…</p>
      )}
    </main>
  );
}
