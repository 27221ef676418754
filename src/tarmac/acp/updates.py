"""PURE: what happens in a task as `session/update`s of ACP v1, and these in the shapes of v2.

(seq, event) or (None, signal) → Updates.of() → [update of v1, …] → EditorVersionTwo.of() → [update of v2, …]

Streamed text is not repeated when the whole answer is in the log. If the editor can show our terminals
(`_meta.terminal_*`), a command's output goes there. Otherwise it is text: the last part, replaced as it grows. The
editor itself shows a command that runs in its own terminal (`embedded`). The screen of a full-screen program is text.

Version 2 is a draft. Its shapes are those of the schema in @agentclientprotocol/sdk 2.4.0. The other direction, for
agents that Tarmac hosts, is in host/version_two.py.
"""

import base64
import codecs
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tarmac.acp.content import (
    MOST_OUTPUT,
    Update,
    call_update,
    chunk,
    console,
    content,
    fenced,
    files_of,
    kind_of,
    named,
    object_of,
    paths_of,
    screen_of,
    text_of,
    user_message,
)
from tarmac.models.messages import Reasoning, Text, ToolUse
from tarmac.tasks import events as e
from tarmac.tasks import signals as s
from tarmac.tools.edit.unified_diff import unified_diff
from tarmac.vt.text import LiveText

CUT_OFF: Final = "Tarmac was stopped before this had ended. What became of it is told with the next prompt."
EVERY: Final = 2_000  # characters after which it is sent again; a short one sooner
_UTF8: Final = codecs.getincrementaldecoder("utf-8")
_SILENT: Final = frozenset({"update_todo_list", "attempt_completion", "ask_followup_question"})  # told in other ways
_STATUS: Final = {"open": "pending", "doing": "in_progress", "done": "completed"}


@dataclass(slots=True)
class _ShownCall:
    name: str
    terminal: Update | None = None  # shown as one of the editor's: what tells it so, until that is sent
    announced: bool = False  # it was
    embedded: bool = False  # it runs in one of the editor's own
    before: dict[str, str | None] = field(default_factory=dict)  # the files it is about to change, as they are
    bytes: codecs.IncrementalDecoder = field(default_factory=lambda: _UTF8("replace"))  # a character may come in two
    live: LiveText | None = None
    text: str = ""  # the last of it
    total: int = 0  # characters of all of it
    sent: int = 0  # how many of them


@dataclass(slots=True)
class Updates:
    """The fold of one session.

    `terminals`: the editor shows terminals of ours; `elsewhere`: a command may run in one of its own, which is known
    only once it has begun. `replay`: the past, for who loads it. `read` gives a file's text
    or None: an editor wants to see both texts of a change.
    """

    terminals: bool = False
    elsewhere: bool = False
    replay: bool = False
    workspace: Path | None = None  # where relative paths are meant from
    read: Callable[[Path], str | None] = lambda path: None
    _words: tuple[float, str] = (0.0, "")  # the person's last ones; an answer may record them once more
    _streamed: set[str] = field(default_factory=set)  # requests whose words were sent as they came
    _calls: dict[str, _ShownCall] = field(default_factory=dict)

    def of(self, thing: e.TaskEvent | s.Signal) -> list[Update]:
        """What to send for it."""
        match thing:
            case s.TextStreamed(request=request, text=text):
                self._streamed.add(request)
                return [chunk("agent_message_chunk", text, request)]
            case s.ReasoningStreamed(request=request, text=text):
                self._streamed.add(request)
                return [chunk("agent_thought_chunk", text, f"{request}-thought")]
            case s.OutputStreamed(call=call, data=data):
                return self._output(call, data)
            case s.RetryCounted(seconds=seconds) if seconds == int(seconds):
                return [chunk("agent_thought_chunk", f"The model did not answer; trying again in {seconds:.0f} s.\n")]
            case e.UserSaid(text=text) | e.MessageQueued(text=text) if self.replay:
                self._words = (thing.at, text)
                return [chunk("user_message_chunk", text, user_message(thing.at))]
            case e.QuestionAnswered(answer="message", text=text) if self.replay and (thing.at, text) != self._words:
                return [chunk("user_message_chunk", text, user_message(thing.at))]
            case e.ModelSaid():
                return self._said(thing)
            case e.ToolStarted():
                return self._started(thing)
            case e.ToolFinished():
                return self._finished(thing)
            case e.TodosUpdated(todos=todos):
                entries = [{"content": t.text, "priority": "medium", "status": _STATUS[t.status]} for t in todos]
                return [{"sessionUpdate": "plan", "entries": entries}]
            case e.ModeSwitched(mode=mode):
                return [{"sessionUpdate": "current_mode_update", "currentModeId": mode}]
            case e.TaskCompleted(result=result):
                return [chunk("agent_message_chunk", result)] if result else []
            case e.QuestionAsked(ask="followup", text=text, choices=choices):
                listed = "".join(f"\n{n}. {choice}" for n, choice in enumerate(choices, 1))
                return [chunk("agent_message_chunk", f"{text}{listed}")]
            case e.RequestFailed(what=what, hint=hint, retry_in=None):
                told = f"{what}\n{hint}" if hint else what
                return [chunk("agent_message_chunk", f"The model could not be reached: {told}\n")]
            case e.Noted(what="error" | "notice", text=text):
                return [chunk("agent_thought_chunk", f"{text}\n")]
        return []

    # The model's words

    def _said(self, said: e.ModelSaid) -> list[Update]:
        streamed = said.request in self._streamed
        self._streamed.discard(said.request)
        updates: list[Update] = []
        for part in said.parts:
            if isinstance(part, ToolUse):
                updates += self._announced(part)
            elif streamed:
                continue
            elif isinstance(part, Text) and part.text:
                updates.append(chunk("agent_message_chunk", part.text, said.request))
            elif isinstance(part, Reasoning) and part.text:
                updates.append(chunk("agent_thought_chunk", part.text, f"{said.request}-thought"))
        return updates

    # Calls

    def _announced(self, use: ToolUse) -> list[Update]:
        if use.name in _SILENT:
            return []
        self._calls[use.id] = _ShownCall(use.name)
        update: Update = {
            "sessionUpdate": "tool_call",
            "toolCallId": use.id,
            "title": use.name.replace("_", " "),
            "kind": kind_of(use.name),
            "status": "pending",
        }
        if (arguments := object_of(use.arguments)) is not None:
            update["rawInput"] = arguments
            if found := named(arguments, self.workspace):
                update["locations"] = found
        return [update]

    def cut_off(self) -> list[Update]:
        """After a replay: what nobody knows the end of is not under way any more."""
        cut = [{**call_update(id), "status": "failed", "content": [content(CUT_OFF)]} for id in self._calls]
        self._calls.clear()
        return cut

    def _started(self, started: e.ToolStarted) -> list[Update]:
        call = self._calls.get(started.call)
        if call is None:
            return []
        update: Update = {**call_update(started.call), "title": started.title, "status": "in_progress"}
        if started.intents:
            update["locations"] = [{"path": str(each.path)} for each in started.intents]
            call.before = {str(each.path): self.read(each.path) if each.before else None for each in started.intents}
        if started.command is None:
            return [update]
        if not self.terminals or self.replay:
            call.live = LiveText()
            return [update]
        info: dict[str, object] = {"terminal_id": started.call}
        if started.cwd is not None:
            info["cwd"] = str(started.cwd)
        shown = [{"type": "terminal", "terminalId": started.call}]
        call.terminal = {"content": shown, "_meta": {"terminal_info": info}}
        if self.elsewhere:
            return [update]
        call.announced = True
        return [{**update, **call.terminal}]

    def embedded(self, id: str, terminal: str) -> list[Update]:
        """A call's command runs in this terminal of the editor, which shows it from now on."""
        call = self._calls.get(id)
        if call is None:
            return []
        call.embedded, call.terminal = True, None
        return [{**call_update(id), "content": [{"type": "terminal", "terminalId": terminal}]}]

    def missed(self, id: str, size: int) -> list[Update]:
        """So many bytes of its output were left out here."""
        return self._output(id, f"\r\n[… {size:,} bytes, which came faster than the editor took them]\r\n".encode())

    def _output(self, id: str, data: bytes) -> list[Update]:
        call = self._calls.get(id)
        if call is None or call.embedded:
            return []
        if call.terminal is not None:
            text = call.bytes.decode(data)
            meta: Update = {"terminal_output": {"terminal_id": id, "data": text}}
            told = [{**call_update(id), "_meta": meta}] if text else []
            return [*self._announce(id, call), *told]
        if call.live is None:
            call.live = LiveText()
        self._more(call, call.live.feed(data))
        if call.total - call.sent < min(EVERY, max(1, call.sent // 8)):
            return []
        call.sent = call.total
        return [{**call_update(id), "content": [console(call.text, call.total)]}]

    def _more(self, call: _ShownCall, new: str) -> None:
        call.total += len(new)
        call.text = (call.text + new)[-MOST_OUTPUT:]

    def _announce(self, id: str, call: _ShownCall) -> list[Update]:
        if call.announced or call.terminal is None:
            return []
        call.announced = True
        return [{**call_update(id), **call.terminal}]

    def _finished(self, finished: e.ToolFinished) -> list[Update]:
        call = self._calls.pop(finished.call, None)
        if call is None:
            return []
        title, status = finished.title or finished.name, "completed" if finished.outcome == "done" else "failed"
        if finished.outcome == "done" and finished.exit_code:
            title, status = f"{title} (exit code {finished.exit_code})", "failed"
        update: Update = {**call_update(finished.call), "title": title, "status": status}
        found = object_of(finished.details) or {}
        command = found.get("command")
        ran = isinstance(command, dict) or finished.outcome == "interrupted"
        text = text_of(finished)
        before: list[Update] = []
        if call.live is not None:
            self._more(call, call.live.finish())
        if ran and call.embedded:
            pass  # the editor shows it, and knows how it ended
        elif ran and call.terminal is not None:
            before = self._announce(finished.call, call)
            told = command if isinstance(command, dict) else {}
            if told.get("running") is True:
                where = f"It is still running, in Tarmac's terminal {told.get('terminal')}."
                shown: Update = {"type": "terminal", "terminalId": finished.call}
                update["content"] = [shown, content(where), *screen_of(found)]
            else:
                exit = {"terminal_id": finished.call, "exit_code": finished.exit_code, "signal": told.get("signal")}
                update["_meta"] = {"terminal_exit": exit}
        elif screen := screen_of(found):
            update["content"] = screen
        elif ran and call.text.strip():
            update["content"] = [console(call.text, call.total)]
        else:
            diffs = self._diffs(call, found) if finished.outcome == "done" else []
            update["content"] = diffs or ([content(text)] if text else [])
        return [*before, self._located(update, found)]

    def _located(self, update: Update, found: dict[str, object]) -> Update:
        if paths := paths_of(found):
            update["locations"] = [{"path": path} for path in paths]
        return update

    def _diffs(self, call: _ShownCall, found: dict[str, object]) -> list[Update]:
        """Both texts of each file that was changed; of one that can't be read, what changed in it."""
        diffs: list[Update] = []
        for file in files_of(found):
            path, diff = file.get("path"), file.get("diff")
            if not isinstance(path, str):
                continue
            after = self.read(Path(path))
            if after is not None and not self.replay:
                diffs.append({"type": "diff", "path": path, "oldText": call.before.get(path), "newText": after})
            elif isinstance(diff, str) and diff:
                diffs.append(content(f"{path}\n{fenced(diff[:MOST_OUTPUT], 'diff')}"))
        return diffs


PLAN: Final = "todos"  # a session has one plan
_PLAIN: Final = re.compile(r'[^\x00-\x1f"\\\x7f-\U0010ffff]*')  # a path that Git does not quote
_CHUNKS: Final = frozenset({"user_message_chunk", "agent_message_chunk", "agent_thought_chunk"})


class EditorVersionTwo:
    """The fold of one session."""

    def __init__(self) -> None:
        self._messages = 0
        self._commands: dict[str, str] = {}  # of each call that has a terminal or may get one

    def of(self, update: Update) -> list[Update]:
        """The same in v2."""
        match update.get("sessionUpdate"):
            case kind if kind in _CHUNKS:
                return [{**update, "messageId": update.get("messageId") or self._message()}]
            case "tool_call" | "tool_call_update":
                return self._call(update)
            case "plan":
                plan = {"type": "items", "planId": PLAN, "entries": update["entries"]}
                return [{"sessionUpdate": "plan_update", "plan": plan}]
            case "current_mode_update":
                return []  # it is an option, and those are told too
            case "config_option_update":
                return [{**update, "configOptions": options_of(update["configOptions"])}]
            case "available_commands_update":
                return [{**update, "availableCommands": commands_of(update["availableCommands"])}]
        return [update]

    def _message(self) -> str:
        self._messages += 1
        return f"tarmac-{self._messages}"

    def _call(self, update: Update) -> list[Update]:
        """A call; what it tells of its terminal comes before, how that ended too."""
        id, given = str(update["toolCallId"]), update.get("rawInput")
        if isinstance(given, dict) and isinstance(command := given.get("command"), str):
            self._commands[id] = command
        meta = _object(update.get("_meta"))
        told = [each for name, value in meta.items() if (each := self._terminal(name, _object(value)))]
        if update.get("status") in ("completed", "failed"):
            self._commands.pop(id, None)
        left = {key: value for key, value in update.items() if key not in ("_meta", "sessionUpdate")}
        if isinstance(content := left.get("content"), list):
            left["content"] = content_of(content)
        return [*told, {"sessionUpdate": "tool_call_update", **left}] if len(left) > 1 else told

    def _terminal(self, name: str, value: Update) -> Update | None:
        id = str(value.get("terminal_id"))
        match name:
            case "terminal_info":
                facts = {"command": self._commands.get(id), "cwd": value.get("cwd")}
                known = {name: each for name, each in facts.items() if each is not None}
                return {"sessionUpdate": "terminal_update", "terminalId": id, **known}
            case "terminal_output":
                data = base64.b64encode(str(value.get("data")).encode("utf-8", "replace")).decode()
                return {"sessionUpdate": "terminal_output_chunk", "terminalId": id, "data": data}
            case "terminal_exit":
                status = {"exitCode": value.get("exit_code"), "signal": value.get("signal")}
                return {"sessionUpdate": "terminal_update", "terminalId": id, "exitStatus": status}
        return None


def permission_of(params: Update, *, command: str, cwd: str) -> Update:
    """A permission request. One for a single command has that as its subject, and all else that is known in words."""
    call = {key: value for key, value in _object(params.get("toolCall")).items() if key != "title"}
    content = call.get("content")
    found: Update = {"title": _object(params.get("toolCall")).get("title"), "options": params["options"]}
    if command and cwd:
        words = [_object(each.get("content")).get("text") for each in content] if isinstance(content, list) else []
        found["description"] = "\n".join(str(each) for each in words if each)
        found["subject"] = {"type": "command", "command": command, "cwd": cwd, "toolCallId": call["toolCallId"]}
        return found
    if isinstance(content, list):
        call["content"] = content_of(content)
    found["subject"] = {"type": "tool_call", "toolCall": call}
    return found


def content_of(content: list[object]) -> list[Update]:
    """What a call shows: two texts of a file are a change of it."""
    return [_diff(each) if each.get("type") == "diff" else each for each in map(_object, content)]


def options_of(options: object) -> list[Update]:
    """Config options, each with its id where v2 has it."""
    found = options if isinstance(options, list) else []
    return [{("configId" if key == "id" else key): value for key, value in each.items()} for each in found]


def commands_of(commands: object) -> list[Update]:
    """Slash commands, each with the kind of its input."""
    found = commands if isinstance(commands, list) else []
    return [{"type": "command", **each, "input": {"type": "text", **each["input"]}} for each in found]


def _diff(each: Update) -> Update:
    path, before, after = str(each["path"]), each.get("oldText"), str(each["newText"])
    old = before if isinstance(before, str) else None
    change: Update = {"operation": "add" if old is None else "modify", "path": path, "fileType": "text"}
    _, _, hunks = unified_diff(old, after, path).text.partition("\n+++ ")
    name, tab = _quoted(path), "\t" * (" " in path)
    head = [f"diff --git {name} {name}"]
    if old is None:
        head.append("new file mode 100644")
    if hunks:
        head += [f"--- {'/dev/null' if old is None else name + tab}", f"+++ {name}{tab}"]
    patch = "".join(f"{line}\n" for line in head) + hunks.partition("\n")[2]
    return {"type": "diff", "changes": [change], "patch": {"format": "git_patch", "text": patch}}


def _quoted(path: str) -> str:
    """A path as Git writes it."""
    if _PLAIN.fullmatch(path):
        return path
    known = {0x22: '\\"', 0x5C: "\\\\", 0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r"}
    data = path.encode("utf-8", "surrogateescape")
    return '"' + "".join(known.get(each) or (chr(each) if 31 < each < 127 else f"\\{each:03o}") for each in data) + '"'


def _object(value: object) -> Update:
    return value if isinstance(value, dict) else {}
