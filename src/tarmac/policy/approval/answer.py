"""What a person answers to a question. Doors make an `Answer`, tasks pass it on, the log keeps its fields."""

from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from pathlib import Path

Picture = tuple[bytes, str]  # its content and its media type


class AnswerKind(StrEnum):
    """The values are those of the log."""

    YES = "yes"
    NO = "no"
    MESSAGE = "message"  # words instead of a yes or a no
    PER_FILE = "object"  # an answer for each file: see `choices`
    SKIP = "skip"  # nobody answered


class GrantScope(StrEnum):
    """Where an "always allow" holds."""

    TASK = "task"
    WORKSPACE = "workspace"
    EVERYWHERE = "everywhere"


@dataclass(frozen=True, slots=True)
class Always:
    """Allow it from now on, without asking."""

    scope: GrantScope
    offer: int = 0  # which of `Request.always`


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The answer for one file of a question about several."""

    path: Path
    answer: AnswerKind


@dataclass(frozen=True, slots=True)
class Answer:
    """A person's answer to any question."""

    kind: AnswerKind
    _: KW_ONLY
    text: str = ""  # words for the model
    images: tuple[Picture, ...] = ()
    always: Always | None = None  # with a yes
    edited: str | None = None  # with a yes: the command that the person wants instead
    choices: tuple[Choice, ...] = ()  # with PER_FILE
    by: str = ""  # the door it came through
