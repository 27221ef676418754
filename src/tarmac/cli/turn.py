"""The person's turn: a task stands still, and the prompt (❯) is theirs.

offer()  it is done: Enter, Ctrl-C and Ctrl-D accept that, words say what is missing
next()   it was stopped, or knows nothing more to do: what now?

What they type stands there as they type it, so it is not told a second time (`typed`).
"""

import asyncio

from tarmac.cli.driven import Driven
from tarmac.cli.person import Person
from tarmac.errors import BadRequest, TarmacError
from tarmac.show.columns import wrapped
from tarmac.show.harmless import one_line
from tarmac.show.pictures import pictures_in
from tarmac.tasks.context import Ended
from tarmac.tasks.events import UserSaid


class Turn:
    """Of one task, and who sits before it."""

    def __init__(self, task: Driven, person: Person, *, after: str) -> None:
        self._task = task
        self._person = person
        self._after = after  # what can be done once it was left
        self._offering: asyncio.Future[str | None] | None = None
        self._typed: str | None = None  # words on their way to the task

    def typed(self, event: object) -> bool:
        """Whether these words are on the screen already, where they were typed."""
        return isinstance(event, UserSaid) and event.text == self._typed and not self._person.beside

    def accept(self) -> bool:
        """Ctrl-C where a result is offered: to leave is to accept."""
        return self._offering is not None and self._offering.cancel()

    async def offer(self) -> bool:
        """Whether they want more of a task that is done."""
        hint = wrapped("Enter accepts it and leaves; or say what is missing.", self._person.screen.look.columns - 1)
        return bool(await self._words("\n".join(hint), offered=True))

    async def next(self, ended: Ended) -> bool:
        """What they say to a task that stands still; False: nothing."""
        look = self._person.screen.look
        what = "– Stopped." if ended.why == "interrupted" else "It is your turn."
        hint = f"Say what to do now, or Enter to go on as before; Ctrl-C leaves ({self._after})."
        if ended.why == "idle":
            hint = f"Say what to do next; Ctrl-C or Ctrl-D leaves ({self._after})."
        lines = "\n".join(wrapped(f"{what} {hint}", look.columns - 1))
        said = await self._words(lines.replace(what, look.paint("35", what), 1), enter=ended.why != "idle")
        return said is not None

    async def _words(self, hint: str, *, enter: bool = True, offered: bool = False) -> bool | None:
        """Say their next words to the task; False: they pressed Enter, where that counts; None: they leave."""
        screen, prompt = self._person.screen, self._person.screen.look.paint("1;34", "❯ ")
        if self._person.keyboard.taken:
            return None
        self._person.keyboard.forget()
        screen.say(f"\n{hint}\n{prompt}")
        while (line := await self._line(offered=offered)) is not None:
            screen.entered()
            if not line.strip() and enter:
                return False
            try:
                if line.strip():
                    await self._say(line.strip())
                    return True
            except BadRequest as error:
                screen.say(f"  {complaint(error)}\n")
            screen.say(prompt)
        screen.say("\n")
        return None

    async def _say(self, text: str) -> None:
        images = await asyncio.to_thread(pictures_in, text)
        self._typed = text
        try:
            await self._task.say(text, images)
        finally:
            self._typed = None

    async def _line(self, *, offered: bool) -> str | None:
        """What they type; of an offer, also Ctrl-C ends it."""
        if not offered:
            return await self._person.keyboard.line()
        self._offering = asyncio.ensure_future(self._person.keyboard.line())
        try:
            await asyncio.wait([self._offering])
            return None if self._offering.cancelled() else self._offering.result()
        finally:
            self._offering = None


def complaint(error: TarmacError) -> str:
    """Why something can't be, on one line."""
    return one_line(error.what) + (f" ({one_line(error.hint)})" if error.hint else "")
