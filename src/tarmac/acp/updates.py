"""PURE: what happens in a task as `session/update`s of ACP v1.

(seq, event) or (None, signal) → Updates.of() → [update, …]

What was streamed is not said again when the whole answer is in the log. A command's output goes to a terminal of the
editor where it can show ours (`_meta.terminal_*`), and else is text, its last part, replaced as it grows; one that runs
in the editor's own terminal (`embedded`) is shown by the editor.
"""

import codecs
import json
from collections.abc import Callable
from dataclasses import field
from pathlib import Path
from typing import Final

from tarmac.dataclass import dataclass
from tarmac.models.messages import Image, Reasoning, Text, ToolUse
from tarmac.tasks import events as e
from tarmac.tasks import signals as s
from tarmac.vt.live import LiveText

Update = dict[str, object]

MOST_OUTPUT: Final = 16_000  # characters of a command's output as text
EVERY: Final = 2_000  # characters after which it is sent again; a short one sooner
_KINDS: Final = {
    "read_file": "read",
    "list_files": "search",
    "search_files": "search",
    "list_code_definition_names": "search",
    "write_to_file": "edit",
    "apply_diff": "edit",
    "insert_content": "edit",
    "search_and_replace": "edit",
    "apply_patch": "edit",
    "execute_command": "execute",
    "run_command": "execute",
    "open_persistent_terminal": "execute",
    "run_persistent_command": "execute",
    "send_to_terminal": "execute",
    "wait_for_terminal": "execute",
    "read_terminal": "read",
    "kill_persistent_terminal": "execute",
    "switch_mode": "switch_mode",
}
_UTF8: Final = codecs.getincrementaldecoder("utf-8")
_SILENT: Final = frozenset({"update_todo_list", "attempt_completion", "ask_followup_question"})  # told in other ways
_STATUS: Final = {"open": "pending", "doing": "in_progress", "done": "completed"}


def kind_of(tool: str) -> str:
    """ACP's word for what a tool does."""
    return _KINDS.get(tool, "other")


@dataclass(slots=True)
class _Call:
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
    read: Callable[[Path], str | None] = lambda path: None
    _streamed: set[str] = field(default_factory=set)  # requests whose words were sent as they came
    _calls: dict[str, _Call] = field(default_factory=dict)

    def of(self, thing: e.TaskEvent | s.Signal) -> list[Update]:
        """What to send for it."""
        match thing:
            case s.TextStreamed(request=request, text=text):
                self._streamed.add(request)
                return [_chunk("agent_message_chunk", text)]
            case s.ReasoningStreamed(request=request, text=text):
                self._streamed.add(request)
                return [_chunk("agent_thought_chunk", text)]
            case s.OutputStreamed(call=call, data=data):
                return self._output(call, data)
            case s.RetryCounted(seconds=seconds) if seconds == int(seconds):
                return [_chunk("agent_thought_chunk", f"The model did not answer; trying again in {seconds:.0f} s.\n")]
            case e.UserSaid(text=text) if self.replay:
                return [_chunk("user_message_chunk", text)]
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
                return [_chunk("agent_message_chunk", result)] if result else []
            case e.QuestionAsked(ask="followup", text=text, choices=choices):
                listed = "".join(f"\n{n}. {choice}" for n, choice in enumerate(choices, 1))
                return [_chunk("agent_message_chunk", f"{text}{listed}")]
            case e.RequestFailed(what=what, retry_in=None):
                return [_chunk("agent_message_chunk", f"The model could not be reached: {what}\n")]
            case e.Noted(what="error" | "notice", text=text):
                return [_chunk("agent_thought_chunk", f"{text}\n")]
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
                updates.append(_chunk("agent_message_chunk", part.text))
            elif isinstance(part, Reasoning) and part.text:
                updates.append(_chunk("agent_thought_chunk", part.text))
        return updates

    # Calls

    def _announced(self, use: ToolUse) -> list[Update]:
        if use.name in _SILENT:
            return []
        self._calls[use.id] = _Call(use.name)
        update: Update = {
            "sessionUpdate": "tool_call",
            "toolCallId": use.id,
            "title": use.name.replace("_", " "),
            "kind": kind_of(use.name),
            "status": "pending",
        }
        if (arguments := _object(use.arguments)) is not None:
            update["rawInput"] = arguments
        return [update]

    def _started(self, started: e.ToolStarted) -> list[Update]:
        call = self._calls.get(started.call)
        if call is None:
            return []
        update: Update = {**_call(started.call), "title": started.title, "status": "in_progress"}
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
        content = [{"type": "terminal", "terminalId": started.call}]
        call.terminal = {"content": content, "_meta": {"terminal_info": info}}
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
        return [{**_call(id), "content": [{"type": "terminal", "terminalId": terminal}]}]

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
            told = [{**_call(id), "_meta": meta}] if text else []
            return [*self._announce(id, call), *told]
        if call.live is None:
            call.live = LiveText()
        self._more(call, call.live.feed(data))
        if call.total - call.sent < min(EVERY, max(1, call.sent // 8)):
            return []
        call.sent = call.total
        return [{**_call(id), "content": [_console(call.text, call.total)]}]

    def _more(self, call: _Call, new: str) -> None:
        call.total += len(new)
        call.text = (call.text + new)[-MOST_OUTPUT:]

    def _announce(self, id: str, call: _Call) -> list[Update]:
        if call.announced or call.terminal is None:
            return []
        call.announced = True
        return [{**_call(id), **call.terminal}]

    def _finished(self, finished: e.ToolFinished) -> list[Update]:
        call = self._calls.pop(finished.call, None)
        if call is None:
            return []
        update: Update = {
            **_call(finished.call),
            "title": finished.title or finished.name,
            "status": "completed" if finished.outcome == "done" else "failed",
        }
        found = _object(finished.details) or {}
        command = found.get("command")
        ran = isinstance(command, dict) or finished.outcome == "interrupted"
        text = _text_of(finished)
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
                update["content"] = [{"type": "terminal", "terminalId": finished.call}, _content(where)]
            else:
                exit = {"terminal_id": finished.call, "exit_code": finished.exit_code, "signal": told.get("signal")}
                update["_meta"] = {"terminal_exit": exit}
        elif ran and call.text.strip():
            update["content"] = [_console(call.text, call.total)]
        else:
            diffs = self._diffs(call, found) if finished.outcome == "done" else []
            update["content"] = diffs or ([_content(text)] if text else [])
        return [*before, self._located(update, found)]

    def _located(self, update: Update, found: dict[str, object]) -> Update:
        if paths := _paths(found):
            update["locations"] = [{"path": path} for path in paths]
        return update

    def _diffs(self, call: _Call, found: dict[str, object]) -> list[Update]:
        """Both texts of each file that was changed; of one that can't be read, what changed in it."""
        diffs: list[Update] = []
        for file in _files(found):
            path, diff = file.get("path"), file.get("diff")
            if not isinstance(path, str):
                continue
            after = self.read(Path(path))
            if after is not None and not self.replay:
                diffs.append({"type": "diff", "path": path, "oldText": call.before.get(path), "newText": after})
            elif isinstance(diff, str) and diff:
                diffs.append(_content(f"{path}\n```diff\n{diff[:MOST_OUTPUT]}\n```"))
        return diffs


def _call(id: str) -> Update:
    return {"sessionUpdate": "tool_call_update", "toolCallId": id}


def _chunk(kind: str, text: str) -> Update:
    return {"sessionUpdate": kind, "content": {"type": "text", "text": text}}


def _content(text: str) -> Update:
    return {"type": "content", "content": {"type": "text", "text": text}}


def _console(text: str, total: int) -> Update:
    """The last of `total` characters, in a fence that none of its lines can close."""
    text = text.rstrip("\n")
    shown = text if total <= MOST_OUTPUT else f"[… {total - MOST_OUTPUT:,} characters before this]\n{text}"
    longest = max((len(line) - len(line.lstrip("`")) for line in shown.split("\n")), default=0)
    fence = "`" * max(3, longest + 1)
    return _content(f"{fence}console\n{shown}\n{fence}")


def _text_of(finished: e.ToolFinished) -> str:
    words = [
        part.text if isinstance(part, Text) else "[an image]"
        for part in finished.content
        if isinstance(part, Text | Image)
    ]
    return "\n".join(words)[:MOST_OUTPUT]


def _object(text: str) -> dict[str, object] | None:
    try:
        found = json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _files(found: dict[str, object]) -> list[dict[str, object]]:
    files = found.get("files")
    return [each for each in files if isinstance(each, dict)] if isinstance(files, list) else []


def _paths(found: dict[str, object]) -> list[str]:
    return [path for file in _files(found) if isinstance(path := file.get("path"), str) and Path(path).is_absolute()]
