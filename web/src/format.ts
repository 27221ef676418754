/** Numbers and times as people read them. */

export function money(dollars: number | null | undefined): string {
  if (dollars === null || dollars === undefined) return "price unknown";
  if (dollars === 0) return "$0";
  return `$${dollars.toFixed(dollars < 0.0995 ? 3 : 2)}`;
}

export function tokens(count: number): string {
  if (count < 1000) return String(count);
  if (count < 999_500) return `${(count / 1000).toFixed(count < 9950 ? 1 : 0)}k`;
  return `${(count / 1e6).toFixed(1)}M`;
}

export function duration(seconds: number): string {
  if (seconds < 0.95) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 59.5) return `${seconds.toFixed(seconds < 9.95 ? 1 : 0)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function ago(at: number, now = Date.now() / 1000): string {
  const seconds = Math.max(0, now - at);
  if (seconds < 60) return "now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h`;
  if (seconds < 7 * 86_400) return `${Math.floor(seconds / 86_400)} d`;
  return new Date(at * 1000).toLocaleDateString(undefined, { day: "numeric", month: "short" });
}

export const clock = (at: number): string =>
  new Date(at * 1000).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });

/** The last two parts of a path: enough to tell folders apart. */
export function shortPath(path: string): string {
  const parts = path.split("/").filter(Boolean);
  return parts.length <= 2 ? path : `…/${parts.slice(-2).join("/")}`;
}

/** A text of the server as a sentence. */
export const sentence = (text: string): string => (text ? text[0]!.toUpperCase() + text.slice(1) + (/[.!?:)…]$/.test(text) ? "" : ".") : "");

// Controls of a terminal: colours, movements, titles. Text of an output is shown without them.
const CONTROLS = /\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\|[@-Z\\-_])|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/g;

export function plain(text: string): string {
  return text
    .replace(CONTROLS, "")
    .replace(/\r\n/g, "\n")
    .replace(/[^\n]*\r(?=[^\n])/g, "");
}
