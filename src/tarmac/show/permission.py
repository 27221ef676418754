"""Ask a person for permission, or for words, with single keys.

QuestionAsked → choices_for() → the keys that work now → Permission.answered() → Answer

A single key answers at once. Words with Enter work too: `yes` and `no` mean what they say, with more words they
carry feedback, and other words are a "no" that tells the model what the person wrote.
"""

import asyncio
import os
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from tarmac.policy.approval import Always, Answer, AnswerKind, Choice, GrantScope
from tarmac.show import details
from tarmac.show.asking import SCOPES, WHERE, granted
from tarmac.show.harmless import one_line
from tarmac.show.look import Look
from tarmac.show.question import is_cut, question_lines
from tarmac.show.ui import Choices
from tarmac.tasks.events import QuestionAsked

NO_INPUT = "(nobody could be asked: their input had ended)"
_EXPLAINED = {
    "y": "yes, do it",
    "n": "no, do not do it; the task goes on",
    "s": "yes, and do not ask again for this in this session",
    "a": "yes, always: shows what would be allowed and where, and you choose",
    "e": "change the command first; the new one is judged again",
    "t": "try it on a copy of the workspace, see what it would change, then keep or discard that",
    "f": "decide file by file",
    "v": "show all of it",
}
_SHORT = {
    "y": "yes",
    "n": "no",
    "s": "yes, this session",
    "a": "always …",
    "e": "edit",
    "t": "try it",
    "f": "file by file",
    "v": "view all",
    "?": "help",
}


def choices_for(asked: QuestionAsked, *, tries: bool = False) -> Choices:
    """PURE: what can be answered to a question. `tries`: commands can be tried on a copy."""
    requests = details.requests(asked.details)
    if requests or asked.ask == "tool":
        offers = _offers(requests)
        can = {
            "y": True,
            "n": True,
            "s": bool(offers),
            "a": bool(offers),
            "e": len(requests) == 1 and details.text(requests[0], "kind") == "Execute",
            "t": tries and len(requests) == 1 and details.text(requests[0], "kind") == "Execute",
            "f": len(requests) > 1 and all(isinstance(each.get("file"), dict) for each in requests),
            "v": is_cut(asked),
            "?": True,
        }
        keys = tuple((key, _SHORT[key]) for key, possible in can.items() if possible)
        return Choices(keys=keys, words="say why not")
    if asked.ask == "followup":
        keys = tuple((str(number), "") for number in range(1, min(len(asked.choices), 9) + 1))
        return Choices(keys=keys, words="your own words" if asked.choices else "type your answer")
    return Choices(keys=(("y", "yes"), ("n", "no")), words="say what to do instead")


def _offers(requests: list[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """What could be always allowed; of several things at once, nothing."""
    return details.objects(requests[0].get("always")) if len(requests) == 1 else []


class Permission:
    """One question, while it is on the screen."""

    def __init__(
        self,
        asked: QuestionAsked,
        look: Look,
        *,
        print: Callable[[str], None],
        ask: Callable[..., Awaitable[str | None]],
        lend: Callable[[], AbstractAsyncContextManager[None]],
        typing: Callable[[], object] = bool,
        tries: Callable[[], Awaitable[Answer | None]] | None = None,
    ) -> None:
        self._asked = asked
        self._look = look
        self._print = print
        self._ask = ask
        self._typing = typing
        self._lend = lend
        self._tries = tries
        self._requests = details.requests(asked.details)

    async def answered(self, choices: Choices) -> Answer | None:
        """The person's answer; None: ask again."""
        line = await self._ask(choices, self._typing)
        if line is None:
            self._print("  → no: the input has ended")
            return Answer(AnswerKind.NO, text=NO_INPUT)
        keys = {key for key, _ in choices.keys}
        word, _, words = line.strip().partition(" ")
        if self._asked.ask == "followup" and not self._requests:
            return self._chosen(line.strip())
        key = {"yes": "y", "no": "n", "help": "?", "always": "a", "edit": "e"}.get(word.lower(), word.lower())
        if key in ("y", "n"):
            said = Answer(AnswerKind.YES if key == "y" else AnswerKind.NO, text=words.strip())
            self._print(f"  → {'yes' if key == 'y' else 'no'}{f': {one_line(words)}' if words.strip() else ''}")
            return said
        if not words and key in keys:
            return await self._special(key, choices)
        if len(line.strip()) < 3:
            self._print(f"  `{one_line(line.strip())}` is not one of the keys. ? lists them.")
            return None
        self._print(f"  → no: {one_line(line)}")
        return Answer(AnswerKind.MESSAGE, text=line.strip())

    def _chosen(self, text: str) -> Answer | None:
        number = int(text) if text.isdecimal() else 0
        if 1 <= number <= len(self._asked.choices):
            text = self._asked.choices[number - 1]
        if text:
            self._print(f"  → {one_line(text)}")
        return Answer(AnswerKind.MESSAGE, text=text) if text else None

    async def _special(self, key: str, choices: Choices) -> Answer | None:
        match key:
            case "s":
                self._print("  → yes, for this session")
                return Answer(AnswerKind.YES, always=Always(GrantScope.TASK))
            case "a":
                return await self._always()
            case "e":
                return await self._edited()
            case "t" if self._tries is not None:
                return await self._tries()
            case "f":
                return await self._file_by_file()
            case "v":
                lines = question_lines(self._asked, self._look, whole=True)
                self._print("".join(f"{line}\n" for line in lines))
            case "?":
                shown = [f"    {name}  {_EXPLAINED[name]}" for name, _ in choices.keys if name in _EXPLAINED]
                shown += [
                    "    words and Enter: no, and the model reads them; @shot.png in them attaches a picture",
                    "    Ctrl-C: stop the task",
                ]
                self._print("\n".join(shown))
        return None

    async def _always(self) -> Answer | None:
        """Which grant, and where; None: neither."""
        offers = _offers(self._requests)
        options = [(number, scope) for number in range(len(offers)) for scope in SCOPES][:9]
        lines = ["  Always allow, from now on and without asking:"]
        for place, (number, scope) in enumerate(options, 1):
            if scope == SCOPES[0]:
                lines.append(f"    {self._look.paint('1', granted(offers[number]))}")
            lines.append(f"      {place}  {WHERE[scope]}")
        self._print("\n".join(lines))
        keys = (*((str(place), "") for place in range(1, len(options) + 1)), ("n", "none of them"))
        line = (await self._ask(Choices(keys=keys)) or "").strip()
        if not line.isdecimal() or not 1 <= int(line) <= len(options):
            self._print("  → nothing is always allowed")
            return None
        number, scope = options[int(line) - 1]
        self._print(f"  → from now on allowed {WHERE[scope]}: {granted(offers[number])}; `tarmac grants` takes it back")
        return Answer(AnswerKind.YES, always=Always(scope, number))

    async def _file_by_file(self) -> Answer | None:
        chosen: list[Choice] = []
        for request in self._requests:
            path = details.text(request, "shown")
            self._print(f"    {one_line(path)}")
            line = await self._ask(Choices(keys=(("y", "change this file"), ("n", "leave it"))))
            if line is None:
                return None
            answer = AnswerKind.YES if line.strip().lower() in ("y", "yes") else AnswerKind.NO
            self._print(f"      → {answer.value}")
            chosen.append(Choice(path=Path(path), answer=answer))
        return Answer(AnswerKind.PER_FILE, choices=tuple(chosen))

    async def _edited(self) -> Answer | None:
        """The command as the person wants it: in their editor if they have one, else in the question's line."""
        command = details.text(self._requests[0], "shown")
        program = os.environ.get("VISUAL") or os.environ.get("EDITOR")
        if program or "\n" in command:
            text = await self._in_editor(program or "vi", command)
        else:
            self._print("  Edit the command:")
            text = await self._ask(Choices(words="Enter judges it again, Ctrl-D leaves it", text=command)) or ""
        text = text.strip("\n")
        if not text.strip() or text == command:
            self._print("  The command is unchanged.")
            return None
        return Answer(AnswerKind.YES, edited=text)

    async def _in_editor(self, program: str, text: str) -> str:
        """Text as it comes back from the person's editor."""
        with tempfile.TemporaryDirectory(prefix="tarmac-edit-") as folder:
            file = Path(folder) / "command.sh"
            file.write_text(text)
            async with self._lend():
                line = f'trap : INT; {program} "$1"'  # Ctrl-C is the editor's
                process = await asyncio.create_subprocess_exec("sh", "-c", line, "sh", str(file), env=os.environ)
                if await process.wait():
                    return text
            return file.read_text(errors="replace")
