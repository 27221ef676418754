/** One task: its timeline, what it asks, and where to answer. */

import { useSignal } from "@preact/signals";
import type { VNode } from "preact";
import { Composer } from "./composer";
import { money, tokens } from "./format";
import { Chevron, TaskContext } from "./items";
import { Markdown } from "./markdown";
import type { Question, Task } from "./protocol";
import { QuestionCard } from "./question";
import { go, toTask } from "./routes";
import { attempt, isPressing, tasks, timeline, type Timeline } from "./store";
import { narrow } from "./tasklist";
import { STATE_WORDS, stateOf } from "./tasks";
import { SecretField, terminalsOf } from "./terminals";
import { TimelineList } from "./timeline";

export function TaskView({ id, terminalsShown, toggleTerminals }: { id: string; terminalsShown: boolean; toggleTerminals: () => void }): VNode {
  const task = tasks.value.get(id) ?? null;
  const known = timeline.value;
  const questions = openQuestions(task);
  const secrets = terminalsOf(id).filter((terminal) => terminal.awaits?.wants === "secret");
  return (
    <TaskContext.Provider value={id}>
      <main class="task" aria-label={task?.title ?? "Task"}>
        {task ? <Head task={task} terminalsShown={terminalsShown} toggleTerminals={toggleTerminals} /> : null}
        {known ? <TimelineList key={id} source={known} tail={<Tail timeline={known} task={task} />} label="Timeline" /> : null}
        <div class="dock">
          {questions.map((question) => (
            <QuestionCard key={question.question} question={question} />
          ))}
          {terminalsShown && !narrow.value ? null : secrets.map((terminal) => <SecretField key={terminal.id} terminal={terminal} />)}
          {task?.trouble ? <p class="notice bad">{task.trouble}</p> : null}
          {task?.elsewhere && task.open ? <p class="notice quiet-notice">Another window works on this task. What you say and answer here goes there.</p> : null}
          {task?.elsewhere && !task.open ? (
            <p class="notice">Another program has this task open and lets nobody join. You can read it here; close it there to go on with it here.</p>
          ) : task ? (
            <Composer task={task} />
          ) : null}
        </div>
      </main>
    </TaskContext.Provider>
  );
}

/** What a task asks now. A subtask asks through the task that started it, so that one's questions are here, too. */
function openQuestions(task: Task | null | undefined): Question[] {
  if (!task) return [];
  const own = task.open ? task.questions.filter(isPressing) : [];
  return own.length || !task.parent ? own : openQuestions(tasks.value.get(task.parent));
}

/** What is under way, below the last row. */
function Tail({ timeline: known, task }: { timeline: Timeline; task: Task | null }): VNode | null {
  const streaming = known.streaming.value;
  const busy = known.items.some((item) => item?.kind === "tool" && item.state === "running");
  void known.changed.value;
  return (
    <div aria-live="off">
      {streaming?.reasoning && !streaming.text ? (
        <div class="fold">
          <span class="fold-head thinking">Thinking… <span class="faint clip">{streaming.reasoning.replace(/\s+/g, " ").slice(-140)}</span></span>
        </div>
      ) : null}
      {streaming?.text ? (
        <div class="said streaming">
          <Markdown text={streaming.text} />
        </div>
      ) : null}
      {task?.running && !streaming && !busy && !task.questions.some(isPressing) ? <p class="working">Working…</p> : null}
    </div>
  );
}

function Head({ task, terminalsShown, toggleTerminals }: { task: Task; terminalsShown: boolean; toggleTerminals: () => void }): VNode {
  const state = stateOf(task);
  const more = useSignal(false);
  const used = task.context_window ? Math.round((100 * (task.context ?? 0)) / task.context_window) : null;
  const parent = task.parent ? tasks.value.get(task.parent) : undefined;
  const children = task.children.map((child) => tasks.value.get(child)).filter((child) => child !== undefined);
  const done = task.todos.filter((todo) => todo.status === "done").length;
  const doing = task.todos.find((todo) => todo.status === "doing") ?? task.todos.find((todo) => todo.status === "open");
  return (
    <header class="task-head">
      <div class="task-line">
        <span class={`dot ${state}`} aria-hidden="true" />
        <h1 title={task.title}>{task.title || "Untitled"}</h1>
        <span class={`state ${state}`}>{STATE_WORDS[state]}</span>
        <span class="grow" />
        <span class="task-buttons">
          {task.status === "paused" ? (
            <button class="quiet" type="button" onClick={() => void attempt("unpause", { task: task.id })}>
              Go on
            </button>
          ) : task.running ? (
            <button class="quiet" type="button" onClick={() => void attempt("pause", { task: task.id })}>
              Pause
            </button>
          ) : null}
          <button class="quiet" type="button" onClick={() => go(toTask(task.id, true))}>
            Replay
          </button>
          <button class="quiet" type="button" aria-pressed={terminalsShown} onClick={toggleTerminals}>
            Terminals
          </button>
        </span>
      </div>
      <div class="task-line facts-line">
        {task.todos.length || children.length ? (
          <button class="fold-head" type="button" aria-expanded={more.value} onClick={() => (more.value = !more.value)}>
            <Chevron open={more.value} />
            {task.todos.length ? `${done} of ${task.todos.length} done` : children.length === 1 ? "1 subtask" : `${children.length} subtasks`}
            {!more.value && doing ? <span class="faint clip">{doing.text}</span> : null}
          </button>
        ) : null}
        {parent ? (
          <span class="crumb clip">
            Subtask of <a href={toTask(parent.id)}>{parent.title}</a>
          </span>
        ) : null}
        <span class="grow" />
        {used === null ? null : (
          <span class="context" title={`${tokens(task.context ?? 0)} of ${tokens(task.context_window ?? 0)} tokens`}>
            <svg viewBox="0 0 20 20" width="16" height="16" aria-hidden="true">
              <circle cx="10" cy="10" r="7.500" fill="none" stroke="var(--line)" stroke-width="3" />
              <circle cx="10" cy="10" r="7.500" fill="none" stroke="currentColor" stroke-width="3" stroke-dasharray={`${used * 0.471} 48`} transform="rotate(-90 10 10)" />
            </svg>
            {used} %<span class="hide-narrow"> context</span>
          </span>
        )}
        <span class="cost" title={`${tokens(task.usage.input)} tokens in, ${tokens(task.usage.output)} out, ${task.requests} requests`}>
          {task.cost === null ? `${tokens(task.usage.input + task.usage.output)} tokens` : money(task.cost)}
        </span>
      </div>
      {more.value ? (
        <>
              <ul class="todos">
                {task.todos.map((todo, at) => (
                  <li key={at} class={todo.status}>
                    <span class="tick" aria-hidden="true">{todo.status === "done" ? "✓" : todo.status === "doing" ? "▸" : "○"}</span>
                    <span class="hidden-text">{todo.status}: </span>
                    {todo.text}
                  </li>
                ))}
              </ul>
              {children.length ? (
                <ul class="subtasks" aria-label="Subtasks">
                  {children.map((child) => (
                    <SubtaskEntry key={child.id} task={child} depth={0} />
                  ))}
                </ul>
              ) : null}
        </>
      ) : null}
    </header>
  );
}

function SubtaskEntry({ task, depth }: { task: Task; depth: number }): VNode {
  const state = stateOf(task);
  const children = depth < 4 ? task.children.map((child) => tasks.value.get(child)).filter((child) => child !== undefined) : [];
  return (
    <li>
      <a href={toTask(task.id)}>
        <span class={`dot ${state}`} aria-hidden="true" /> {task.title} <span class="faint">{STATE_WORDS[state].toLowerCase()}</span>
      </a>
      {children.length ? (
        <ul>
          {children.map((child) => (
            <SubtaskEntry key={child.id} task={child} depth={depth + 1} />
          ))}
        </ul>
      ) : null}
    </li>
  );
}
