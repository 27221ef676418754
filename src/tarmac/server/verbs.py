"""What a client may say, a page or another front end: a JSON object whose `do` names the verb.

text frame → read_message() → Follow | Watch | Say | …, or BadRequest that names the field

Each verb is a type. Its fields are the fields of the frame.
"""

import base64
import binascii
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from tarmac.errors import BadRequest
from tarmac.policy.approval import Always, Answer, AnswerKind, Choice, GrantScope, Picture
from tarmac.server.unix_socket import ClientName
from tarmac.tasks.auto import Auto

LARGEST_PICTURE: Final = 20 << 20
MOST_PICTURES: Final = 20

Name = Annotated[str, Meta(min_length=1, max_length=200)]
Text = Annotated[str, Meta(max_length=4 << 20)]
Place = Annotated[str, Meta(min_length=1, max_length=4096)]
Size = Annotated[int, Meta(ge=1, le=1000)]
Offset = Annotated[int, Meta(ge=0, lt=1 << 62)]


class ClientVerb(msgspec.Struct, frozen=True, tag_field="do", tag=str.lower, kw_only=True, forbid_unknown_fields=False):
    """One frame of a client."""

    id: int | str | None = None  # None: no reply is wanted


class PastedImage(msgspec.Struct, frozen=True):
    """A picture that a person pasted."""

    media_type: Annotated[str, Meta(pattern=r"^image/[\w.+-]{1,40}$")]
    base64: str


class OneTask(ClientVerb, frozen=True):
    """A verb for a task."""

    task: Name


class OneTerminal(ClientVerb, frozen=True):
    """A verb for a terminal."""

    terminal: Name


class Ping(ClientVerb, frozen=True):
    """Say something: the client has heard nothing for a while."""


class Follow(OneTask, frozen=True):
    after: Offset | None = None
    live: bool = False  # only where it is open


class Unfollow(OneTask, frozen=True):
    pass


class Watch(OneTerminal, frozen=True):
    offset: Offset | None = msgspec.field(name="from", default=None)


class Unwatch(OneTerminal, frozen=True):
    pass


class Ack(OneTerminal, frozen=True):
    offset: Offset


class Take(OneTerminal, frozen=True):
    pass


class Give(OneTerminal, frozen=True):
    epoch: int


class Input(OneTerminal, frozen=True):
    epoch: int
    data: Annotated[str, Meta(max_length=1 << 20)] = ""
    raw: Annotated[bytes, Meta(max_length=1 << 20)] = b""  # base64: keys that may be no text


class TypeSecret(OneTerminal, frozen=True, tag="secret"):
    data: Annotated[str, Meta(max_length=4096)]


class Resize(OneTerminal, frozen=True):
    epoch: int
    rows: Size
    columns: Size


class Select(OneTerminal, frozen=True):
    text: Annotated[str, Meta(max_length=1 << 20)]


class Focus(OneTerminal, frozen=True):
    pass


class Open(ClientVerb, frozen=True):
    cwd: Place | None = None
    task: Name | None = None


class Close(OneTerminal, frozen=True):
    pass


class Interrupt(OneTerminal, frozen=True):
    pass


class Create(ClientVerb, frozen=True):
    text: Text
    images: tuple[PastedImage, ...] = ()
    mode: Name | None = None
    model: Name | None = None
    level: Auto | None = None
    cwd: Place | None = None


class Say(OneTask, frozen=True):
    text: Text = ""
    images: tuple[PastedImage, ...] = ()


class Withdraw(OneTask, frozen=True):
    message: Name


class AlwaysAllow(msgspec.Struct, frozen=True):
    """As `Always` of an answer."""

    scope: GrantScope
    offer: Annotated[int, Meta(ge=0, le=100)] = 0


class PerFile(msgspec.Struct, frozen=True):
    """As `Choice` of an answer."""

    path: Place
    answer: Literal["yes", "no"]


class AnswerQuestion(OneTask, frozen=True, tag="answer"):
    question: Name
    kind: Literal["yes", "no", "message", "object"]
    text: Text = ""
    images: tuple[PastedImage, ...] = ()
    always: AlwaysAllow | None = None
    edited: Text | None = None
    choices: tuple[PerFile, ...] = ()


class Try(OneTask, frozen=True):
    question: Name


class KeepTrial(OneTask, frozen=True, tag="keep"):
    question: Name


class DiscardTrial(OneTask, frozen=True, tag="discard"):
    question: Name


class HoldQuestion(OneTask, frozen=True, tag="hold"):
    question: Name


class Resume(OneTask, frozen=True):
    pass


class Show(OneTask, frozen=True):
    pass


class RunTask(OneTask, frozen=True, tag="run"):
    pass


class Cancel(OneTask, frozen=True):
    pass


class Pause(OneTask, frozen=True):
    pass


class Unpause(OneTask, frozen=True):
    pass


class Abort(OneTask, frozen=True):
    pass


class Shut(OneTask, frozen=True):
    pass


class Delete(OneTask, frozen=True):
    pass


class Level(OneTask, frozen=True):
    level: Auto


class Undo(OneTask, frozen=True):
    to: Offset | None = None  # the number of the fact before which it goes back; None: the files of the last turn
    files: bool = True
    conversation: bool = False  # rewind what was said, too
    force: bool = False  # also files that somebody else changed since


class UndoPreview(OneTask, frozen=True, tag="undo_preview"):
    to: Offset | None = None  # None: since its beginning


class Background(OneTask, frozen=True):
    pass


class CondenseTask(OneTask, frozen=True, tag="condense"):
    focus: Text = ""


class SetMode(OneTask, frozen=True, tag="mode"):
    mode: Name


class SetModel(OneTask, frozen=True, tag="model"):
    model: Name


AnyVerb = (
    Ping
    | Follow
    | Unfollow
    | Watch
    | Unwatch
    | Ack
    | Take
    | Give
    | Input
    | TypeSecret
    | Resize
    | Select
    | Focus
    | Open
    | Close
    | Interrupt
    | Create
    | Say
    | Withdraw
    | AnswerQuestion
    | HoldQuestion
    | Try
    | KeepTrial
    | DiscardTrial
    | Resume
    | Show
    | RunTask
    | Cancel
    | Pause
    | Unpause
    | Abort
    | Shut
    | Delete
    | Level
    | SetMode
    | SetModel
    | Undo
    | UndoPreview
    | Background
    | CondenseTask
)
SLOW: Final = (
    Create,
    Say,
    Resume,
    RunTask,
    Delete,
    Shut,
    Abort,
    Open,
    Close,
    Interrupt,
    TypeSecret,
    Give,
    SetModel,
    Undo,
    UndoPreview,
    CondenseTask,
    Try,
    KeepTrial,
    DiscardTrial,
)  # done beside the others
_DECODER: Final[msgspec.json.Decoder[AnyVerb]] = msgspec.json.Decoder(AnyVerb)


class Hello(msgspec.Struct, frozen=True):
    """The first frame. A page proves who it is, another front end says what it is."""

    hello: str = ""
    client: ClientName = "cli"


_HELLO: Final = msgspec.json.Decoder(Hello)


def read_hello(frame: str) -> Hello:
    """A client's first frame. One that makes no sense has no proof."""
    try:
        return _HELLO.decode(frame)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return Hello()


class FrameId(msgspec.Struct, frozen=True):
    """What a reply to a frame that makes no sense needs."""

    id: int | str | None = None


_FRAME_ID: Final = msgspec.json.Decoder(FrameId)


def read_message(frame: str) -> AnyVerb:
    """The verb in a frame; BadRequest says what is wrong with it."""
    try:
        return _DECODER.decode(frame)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise BadRequest(f"invalid message: {error}") from None


def read_id(frame: str) -> int | str | None:
    """The id of a frame that `read_message` refused."""
    try:
        return _FRAME_ID.decode(frame).id
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None


def pictures(images: tuple[PastedImage, ...]) -> tuple[Picture, ...]:
    """Their bytes."""
    if len(images) > MOST_PICTURES:
        raise BadRequest(f"{len(images)} pictures are too many: the limit is {MOST_PICTURES}")
    return tuple(_picture(each) for each in images)


def _picture(image: PastedImage) -> Picture:
    try:
        data = base64.b64decode(image.base64, validate=True)
    except (binascii.Error, ValueError):
        raise BadRequest("a picture is not base64") from None
    if len(data) > LARGEST_PICTURE:
        raise BadRequest(f"a picture has {len(data):,} bytes. The limit is {LARGEST_PICTURE:,}")
    return data, image.media_type


def answer_of(said: AnswerQuestion, by: str) -> Answer:
    """The same as every front end says it."""
    return Answer(
        AnswerKind(said.kind),
        text=said.text,
        images=pictures(said.images),
        always=Always(said.always.scope, said.always.offer) if said.always else None,
        edited=said.edited,
        choices=tuple(Choice(path=Path(each.path), answer=AnswerKind(each.answer)) for each in said.choices),
        by=by,
    )
