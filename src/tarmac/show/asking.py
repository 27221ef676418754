"""Asking the person at the terminal: y, a(lways), n, e(dit), or words.

QuestionAsked ─shown by the renderer→ ask() ─keys→ Answer → Task.answer(…)

What "always" would allow is shown word for word before it counts. The end of input is no answer: a request is denied
by it, and said to be. Nothing that was typed before the question counts.
"""

import asyncio
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from tarmac.policy.approval import Always, Answer, AnswerKind, Choice, GrantScope
from tarmac.show import details
from tarmac.show.harmless import harmless, one_line
from tarmac.show.keyboard import Keyboard
from tarmac.show.question import HEAD, is_cut, question_lines
from tarmac.show.screen import Screen
from tarmac.tasks.events import QuestionAsked

SCOPES = (GrantScope.TASK, GrantScope.WORKSPACE, GrantScope.EVERYWHERE)
WHERE = {
    GrantScope.TASK: "in this task",
    GrantScope.WORKSPACE: "in this workspace",
    GrantScope.EVERYWHERE: "everywhere",
}
HELP = """\
  y [WORDS]    yes; words are told to the model with it
  n [WORDS]    no, and why
  a            always: shows what would be allowed, and where; you choose
  e            change the command first; what you make of it is judged anew
  s            some: of several files, one by one
  v            show all of it
  WORDS        told to the model, and it is not done; @shot.png in them shows it a picture
  Ctrl-C       stop the task; `tarmac resume` goes on
"""


async def ask(
    asked: QuestionAsked, keyboard: Keyboard, screen: Screen, begun: Callable[[], None] = lambda: None
) -> Answer:
    """The person's answer to a question that is on the screen; `begun` is called when they begin to type it."""
    keyboard.forget()
    if details.requests(asked.details) or asked.ask == "tool":
        return await _permission(asked, keyboard, screen)
    if asked.ask == "followup":
        return await _followup(asked, keyboard, screen, begun)
    return await _plain(asked, keyboard, screen)


async def _permission(asked: QuestionAsked, keyboard: Keyboard, screen: Screen) -> Answer:
    requests = details.requests(asked.details)
    offers = _offers(requests)
    editable = len(requests) == 1 and details.text(requests[0], "kind") == "Execute"
    several = len(requests) > 1 and all(isinstance(each.get("file"), dict) for each in requests)
    can = {"y": True, "a": offers, "n": True, "s": several, "e": editable, "v": is_cut(asked), "?": True}
    keys = [key for key, possible in can.items() if possible]
    while True:
        screen.put(screen.look.paint("1", f"  [{'/'.join(keys)}] or say something: "))
        line = await keyboard.line()
        if line is None:
            screen.put("\n  (end of input: not allowed)\n")
            return Answer(AnswerKind.NO, text="(nobody could be asked: their input had ended)")
        word, _, words = line.strip().partition(" ")
        words = words.strip()
        match word.lower():
            case "":
                continue
            case "y" | "yes":
                return Answer(AnswerKind.YES, text=words)
            case "n" | "no":
                return Answer(AnswerKind.NO, text=words)
            case "a" | "always" if offers and not words:
                if (said := await _always(offers, keyboard, screen)) is not None:
                    return said
            case "e" | "edit" if editable and not words:
                if (said := await _edited(details.text(requests[0], "shown"), keyboard, screen)) is not None:
                    return said
            case "s" | "some" if several and not words:
                if (said := await _some(requests, keyboard, screen)) is not None:
                    return said
            case "v" | "view" if not words:
                screen.put("".join(f"{each}\n" for each in question_lines(asked, screen.look, whole=True)))
            case "?" | "help" | "h" if not words:
                screen.put(HELP)
            case _ if len(line.strip()) < 3:
                screen.put(f"  `{one_line(line.strip())}` is none of these keys; ? explains them\n")
            case _:
                return Answer(AnswerKind.MESSAGE, text=line.strip())


def _offers(requests: list[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """What could be always allowed; of several things at once, nothing."""
    return details.objects(requests[0].get("always")) if len(requests) == 1 else []


async def _always(offers: list[Mapping[str, object]], keyboard: Keyboard, screen: Screen) -> Answer | None:
    """Which of them, and where; None: neither."""
    choices = [(number, scope) for number in range(len(offers)) for scope in SCOPES]
    screen.put("  Always allow, from now on and without asking:\n")
    for place, (number, scope) in enumerate(choices, 1):
        if scope == SCOPES[0]:
            screen.put(f"    {screen.look.paint('1', granted(offers[number]))}\n")
        screen.put(f"      {place}  {WHERE[scope]}\n")
    screen.put("  which number? (Enter: none of them) ")
    line = await keyboard.line()
    if line is None or not line.strip().isdecimal() or not 1 <= int(line.strip()) <= len(choices):
        if line and line.strip():
            screen.put("  none of them\n")
        return None
    number, scope = choices[int(line.strip()) - 1]
    screen.put(f"  from now on allowed {WHERE[scope]}: {granted(offers[number])}; `tarmac grants` takes it back\n")
    return Answer(AnswerKind.YES, always=Always(scope, number))


def granted(offer: Mapping[str, object]) -> str:
    """What a grant covers, in one line."""
    text = one_line(details.text(offer, "text").replace("\n", " ⏎ "))
    return f"{text} … (whatever follows these words)" if offer.get("kind") == "prefix" else f"{text} (this line only)"


async def _some(requests: list[Mapping[str, object]], keyboard: Keyboard, screen: Screen) -> Answer | None:
    """Each file by itself; None: the person would rather not."""
    choices: list[Choice] = []
    for request in requests:
        path = details.text(request, "shown")
        screen.put(f"    {one_line(path)} [y/N] ")
        line = await keyboard.line()
        if line is None:
            return None
        yes = line.strip().lower() in ("y", "yes")
        choices.append(Choice(path=Path(path), answer=AnswerKind.YES if yes else AnswerKind.NO))
    return Answer(AnswerKind.PER_FILE, choices=tuple(choices))


async def _edited(command: str, keyboard: Keyboard, screen: Screen) -> Answer | None:
    """What the person makes of a command: in their editor, else typed anew."""
    program = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if program:
        text = await _in_editor(program, command, keyboard)
    else:
        screen.put("  the command, as it shall be (Enter: leave it): ")
        text = await keyboard.line() or ""
    text = text.strip("\n")
    if not text.strip() or text == command:
        screen.put("  unchanged\n")
        return None
    return Answer(AnswerKind.YES, edited=text)


async def _in_editor(program: str, text: str, keyboard: Keyboard) -> str:
    with tempfile.TemporaryDirectory(prefix="tarmac-edit-") as folder:
        file = Path(folder) / "command.sh"
        file.write_text(text)
        with keyboard.lend():
            line = f'trap : INT; {program} "$1"'  # Ctrl-C is the editor's, not the shell's that starts it
            process = await asyncio.create_subprocess_exec("sh", "-c", line, "sh", str(file), env=os.environ)
            if await process.wait():
                return text
        return file.read_text(errors="replace")


async def _followup(asked: QuestionAsked, keyboard: Keyboard, screen: Screen, begun: Callable[[], None]) -> Answer:
    alone = details.takes_first_after(asked.details) is not None  # it is answered by itself, unless they begin to type
    hint = f"a number up to {len(asked.choices)}, or your own words" if asked.choices else "your answer"
    while True:
        screen.put(screen.look.paint("1", f"  {hint}: "))
        line = await (keyboard.noticed(begun, screen.put) if alone else keyboard.line())
        if line is None:
            screen.put("\n  (end of input: no answer)\n")
            return Answer(AnswerKind.NO)
        text = line.strip()
        if text.isdecimal() and 1 <= int(text) <= len(asked.choices):
            return Answer(AnswerKind.MESSAGE, text=asked.choices[int(text) - 1])
        if text:
            return Answer(AnswerKind.MESSAGE, text=text)


async def _plain(asked: QuestionAsked, keyboard: Keyboard, screen: Screen) -> Answer:
    while True:
        screen.put(screen.look.paint("1", "  [y/n] or say something: "))
        line = await keyboard.line()
        if line is None:
            screen.put("\n  (end of input: no)\n")
            return Answer(AnswerKind.NO)
        word, _, words = line.strip().partition(" ")
        if word.lower() in ("y", "yes"):
            return Answer(AnswerKind.YES, text=words.strip())
        if word.lower() in ("n", "no"):
            return Answer(AnswerKind.NO, text=words.strip())
        if len(line.strip()) > 2:
            return Answer(AnswerKind.MESSAGE, text=line.strip())


async def ask_secret(prompt: str, program: str, keyboard: Keyboard, screen: Screen) -> str | None:
    """What only the person knows, typed unseen; it goes to the program that asked, and nowhere else."""
    head = f"? {one_line(program) or 'A command'} asks for a secret. What you type goes to it alone, and is not shown."
    with keyboard.unseen():
        keyboard.forget()
        screen.put("\n" + screen.look.paint(HEAD, head) + f"\n  {harmless(prompt.strip()) or 'secret:'} ")
        try:
            return await keyboard.line()
        finally:
            screen.put("\n")
