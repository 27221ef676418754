/** Where the person looks: in the fragment of the address, so the server sees none of it. */

import { computed, signal } from "@preact/signals";

export type Route =
  | { page: "home" }
  | { page: "task"; task: string; replay: boolean }
  | { page: "terminals" }
  | { page: "settings" }
  | { page: "usage" };

const hash = signal(location.hash);
addEventListener("hashchange", () => (hash.value = location.hash));

export const route = computed<Route>(() => {
  const [, page, id, more] = hash.value.split("/");
  if (page === "task" && id) return { page: "task", task: decodeURIComponent(id), replay: more === "replay" };
  if (page === "terminals" || page === "settings" || page === "usage") return { page };
  return { page: "home" };
});

export const toTask = (task: string, replay = false): string => `#/task/${encodeURIComponent(task)}${replay ? "/replay" : ""}`;

export function go(to: string): void {
  location.hash = to;
  hash.value = location.hash;
}
