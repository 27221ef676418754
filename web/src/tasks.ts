/** PURE: what state a task is in, for a person. */

import type { Task } from "./protocol";
import { isPressing } from "./store";

export type TaskState = "waiting" | "running" | "done" | "failed" | "paused" | "idle" | "elsewhere";

export function stateOf(task: Task): TaskState {
  if (task.open && task.questions.some(isPressing)) return "waiting";
  if (task.running) return "running";
  if (task.elsewhere) return "elsewhere";
  if (task.trouble) return "failed";
  if (task.status === "completed") return "done";
  if (task.status === "aborted") return "failed";
  if (task.status === "paused") return "paused";
  return "idle";
}

export const STATE_WORDS: Readonly<Record<TaskState, string>> = {
  waiting: "Waits for you",
  running: "Running",
  done: "Done",
  failed: "Ended early",
  paused: "Paused",
  idle: "Idle",
  elsewhere: "Open elsewhere",
};
