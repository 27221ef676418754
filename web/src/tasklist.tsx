/** The list of tasks: what waits for the person first, with its question, answerable right there. */

import { signal, useSignal } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect } from "preact/hooks";
import { get } from "./connection";
import { ago, money, shortPath } from "./format";
import type { Task } from "./protocol";
import { QuestionCard } from "./question";
import { route, toTask } from "./routes";
import { isPressing, tasks, welcome } from "./store";
import { STATE_WORDS, stateOf, type TaskState } from "./tasks";

interface Found {
  task: string;
  seq: number;
  who: string;
  excerpt: string;
}

const MOST = 60;
const media = matchMedia("(max-width: 1100px)");
export const narrow = signal(media.matches);
media.addEventListener("change", (event) => (narrow.value = event.matches));

export function TaskList(): VNode {
  const search = useSignal("");
  const found = useSignal<ReadonlyMap<string, string> | null>(null);
  const more = useSignal(MOST);
  const all = [...tasks.value.values()].sort((one, other) => other.at - one.at);

  useEffect(() => {
    const text = search.value.trim();
    if (!text) {
      found.value = null;
      return;
    }
    const timer = setTimeout(() => {
      get<{ found?: Found[] }>(`/api/tasks?q=${encodeURIComponent(text)}&limit=100`)
        .then((reply) => (found.value = new Map((reply.found ?? []).reverse().map((each) => [each.task, each.excerpt]))))
        .catch(() => (found.value = new Map()));
    }, 150);
    return () => clearTimeout(timer);
  }, [search.value]);

  const text = search.value.trim().toLowerCase();
  const matches = (task: Task): boolean => !text || task.title.toLowerCase().includes(text) || (found.value?.has(task.id) ?? false);
  const shown = all.filter(matches);
  const ids = new Set(shown.map((task) => task.id));
  const children = new Map<string, Task[]>();
  for (const task of shown) if (task.parent) children.set(task.parent, [...(children.get(task.parent) ?? []), task]);
  const any = (task: Task, state: TaskState): boolean => stateOf(task) === state || (children.get(task.id) ?? []).some((child) => any(child, state));
  const roots = shown.filter((task) => !(task.parent && ids.has(task.parent)));
  const waiting = roots.filter((task) => any(task, "waiting"));
  const running = roots.filter((task) => any(task, "running") && !any(task, "waiting"));
  const rest = roots.filter((task) => !any(task, "running") && !any(task, "waiting"));

  return (
    <nav class="tasks" aria-label="Tasks">
      <div class="tasks-head">
        <input
          id="search"
          type="search"
          placeholder="Search tasks"
          aria-label="Search tasks"
          value={search.value}
          onInput={(event) => (search.value = event.currentTarget.value)}
        />
        <a class="button" href="#/" title="New task (n)">
          New
        </a>
      </div>
      <div class="tasks-scroll" tabIndex={-1}>
        <Group name="Waits for you" tasks={waiting} excerpts={found.value} asking={narrow.value || route.value.page !== "home"} nested={children} />
        <Group name="Running" tasks={running} excerpts={found.value} nested={children} />
        <Group name={text ? "Found" : "Earlier"} tasks={rest.slice(0, more.value)} excerpts={found.value} nested={children} />
        {rest.length > more.value ? (
          <button class="quiet" type="button" onClick={() => (more.value += MOST)}>
            {rest.length - more.value} more
          </button>
        ) : null}
        {!shown.length ? <p class="faint empty">{!welcome.value ? "Connecting…" : text ? "Nothing found." : "No tasks yet."}</p> : null}
      </div>
    </nav>
  );
}

interface GroupProps {
  name: string;
  tasks: Task[];
  excerpts: ReadonlyMap<string, string> | null;
  asking?: boolean;
  nested: ReadonlyMap<string, Task[]>;
}

function Group({ name, tasks: list, excerpts, asking = false, nested }: GroupProps): VNode | null {
  if (!list.length) return null;
  return (
    <section class="group">
      <h2>
        {name} <span class="count">{list.length}</span>
      </h2>
      <ul>
        {list.map((task) => (
          <Entry key={task.id} task={task} excerpts={excerpts} asking={asking} nested={nested} depth={0} />
        ))}
      </ul>
    </section>
  );
}

interface EntryProps {
  task: Task;
  excerpts: ReadonlyMap<string, string> | null;
  asking: boolean;
  nested: ReadonlyMap<string, Task[]>;
  depth: number;
}

function Entry({ task, excerpts, asking, nested, depth }: EntryProps): VNode {
  const state = stateOf(task);
  const now = route.value;
  const current = now.page === "task" && now.task === task.id;
  const elsewhere = task.workspace !== welcome.value?.workspace;
  const excerpt = excerpts?.get(task.id);
  const below = depth < 4 ? (nested.get(task.id) ?? []) : [];
  return (
    <li>
      <a class="entry" href={toTask(task.id)} aria-current={current ? "page" : undefined}>
        <span class={`dot ${state}`} title={STATE_WORDS[state]}>
          <span class="hidden-text">{STATE_WORDS[state]}</span>
        </span>
        <span class="entry-title">{task.title || "Untitled"}</span>
        <span class="entry-facts">
          {ago(task.at)}
          {task.cost ? ` · ${money(task.cost)}` : ""}
          {elsewhere ? ` · ${shortPath(task.workspace)}` : ""}
          {state === "elsewhere" || state === "paused" ? ` · ${STATE_WORDS[state].toLowerCase()}` : ""}
        </span>
        {excerpt ? <span class="entry-excerpt">{excerpt}</span> : null}
      </a>
      {asking && !current
        ? task.questions.filter(isPressing).map((question) => <QuestionCard key={question.question} question={question} compact />)
        : null}
      {below.length ? (
        <ul class="below">
          {below.map((child) => (
            <Entry key={child.id} task={child} excerpts={excerpts} asking={asking} nested={nested} depth={depth + 1} />
          ))}
        </ul>
      ) : null}
    </li>
  );
}
