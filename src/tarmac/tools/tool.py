"""What a tool is: typed arguments, a preparation that changes nothing, and an act that needs permission.

arguments ─toolbox.decode→ Tool ─prepare(bench)→ Ready(wants, intents) ─judged, approved, logged→ act(Go) → Done

A tool is a frozen dataclass. Its fields are its arguments: the schema a model gets, the check of what it sent and
the table in docs/tools.md all come from them. It knows no log and asks nobody for permission: it says what it wants
(policy actions), and acts when it is told to go.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self

from tarmac.errors import ToolFailed
from tarmac.events import TaskId, TerminalId
from tarmac.models.messages import Blob, Part, Text
from tarmac.policy import Action, Verdict
from tarmac.policy.files import Files
from tarmac.terminals.execution import Execution
from tarmac.terminals.pool.protocol import Terminals
from tarmac.terminals.terminal import Terminal

if TYPE_CHECKING:
    from tarmac.models.image_model import ImageModel
    from tarmac.tools.browser_action import Browser
    from tarmac.tools.servers.hub import Hub

Need = Literal["servers", "browser", "image model"]  # what a tool can't work without
Group = Literal["read", "edit", "command", "mcp", "modes", "browser", "always"]


# What a tool says before it acts


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """One thing that needs permission, judged by itself. For a file: its content now, and its new content."""

    action: Action
    before: bytes | None = None
    content: bytes | None = None  # what an approval is bound to
    folder: bool = False  # what is read is one
    outside: bool = False  # of the workspace
    protected: str = ""  # why


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """A planned change of a file, by the SHA-256 of its content; None: no file."""

    path: Path
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The task knows this version of a file from now on."""

    path: Path
    digest: str | None  # None: it is not there
    how: Literal["read", "edited"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Go:
    """Permission to act: the verdict on each want, in order, and what a person added to it."""

    verdicts: tuple[Verdict, ...] = ()
    approved: bool = False  # a person said yes; else no verdict asks, and a command runs by its plan
    command: str | None = None  # as the person edited it; the verdict is of this one
    refused: frozenset[int] = frozenset()  # of a batch of files: the wants (by position) the person said no to


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The outcome of a call: what the model is told, and what a front end shows."""

    content: tuple[Part, ...]  # Text, Image
    outcome: Literal["done", "failed"] = "done"
    exit_code: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)  # what a front end shows: docs/tools.md lists it
    output: str = ""  # of a command, clean and without boundary tags, for a front end that has its own
    seen: tuple[Seen, ...] = ()
    essence: str = ""  # the content without what differs each time (tags, durations), where that is in it

    @classmethod
    def text(
        cls,
        text: str,
        *,
        outcome: Literal["done", "failed"] = "done",
        details: Mapping[str, Any] | None = None,
        essence: str = "",
        output: str = "",
    ) -> Self:
        """An outcome with text only."""
        return cls(content=(Text(text),), outcome=outcome, details=details or {}, essence=essence, output=output)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A prepared call. `act` may be called once, soon. It checks the files again when it writes."""

    title: str  # "Running `make`"
    done: str  # "Ran `make`"
    act: Callable[[Go], Awaitable[Done]]
    wants: tuple[Want, ...] = ()
    intents: tuple[Intent, ...] = ()
    command: str | None = None
    cwd: Path | None = None
    terminal: TerminalId | None = None  # where it is an argument: an approval is bound to it
    then: Callable[[], Awaitable["Ready"]] | None = None  # the rest of the preparation, once `wants` are allowed

    @classmethod
    def first(cls, title: str, done: str, want: Want, then: Callable[[], Awaitable["Ready"]]) -> "Ready":
        """For a call whose preparation has an effect: a server is started, or a name is looked up."""

        async def act(go: Go) -> Done:
            rest = await then()
            if rest.wants:
                raise ToolFailed(f"{title}: this needs another approval. Follow `then`.")
            return await rest.act(go)

        return cls(title=title, done=done, wants=(want,), act=act, then=then)


# What it works with


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The next bytes of a command; `end` is where they end in its spool."""

    terminal: TerminalId | None  # None: it runs without a terminal
    data: bytes
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The progress of a call."""

    text: str


Live = Output | Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """An answer the model offers; choosing it may switch the mode."""

    text: str
    mode: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TodoItem:
    """An item of the todo list."""

    text: str
    status: Literal["open", "doing", "done"] = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a person answered."""

    text: str
    images: tuple[Blob, ...] = ()


class Talk(Protocol):
    """The part of a task that tools use."""

    async def ask(self, question: str, suggestions: tuple[Suggestion, ...]) -> Reply:
        """Wait for a person's answer."""

    async def complete(self, result: str) -> Reply | None:
        """Offer the result; None: it was accepted, and the task is done."""

    async def switch_mode(self, mode: str, why: str) -> str:
        """Switch the mode, and return what the model is told. Raises ToolFailed if there is no such mode."""

    async def subtask(self, mode: str, message: str) -> str:
        """Run a subtask, and return its result. Raises ToolFailed if there is none."""

    async def set_todos(self, todos: tuple[TodoItem, ...]) -> None:
        """Replace the whole list."""

    def condense(self, focus: str) -> None:
        """Condense the conversation before the next request."""

    def output(self, number: int) -> str | None:
        """What an earlier call returned, by its number, if there was one."""

    def slash_command(self, name: str) -> str | None:
        """The text behind a command of that name, if there is one."""

    def slash_commands(self) -> Mapping[str, str]:
        """All of them, with what they are for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSettings:
    """What can be set about tools. Times in seconds."""

    command_timeout: float = 60.0  # then a command is left running
    longest_timeout: float = 600.0  # that a model may ask for
    wait_timeout: float = 30.0  # of wait_for_terminal
    files_per_read: int = 5
    largest_image: int = 5 << 20  # bytes
    images_per_read: int = 20 << 20  # bytes of all together
    fuzzy_threshold: float = 0.9
    news_characters: int = 8_000  # of background terminals' output, a turn
    browser: bool = False  # offer browser_action, where there is a Chromium
    wake_on_exit: bool = True  # a task at rest goes on when a command that it left running ends or asks
    diagnostics: tuple[str, ...] = ()  # "*.py: command {file}", run after an edit


class EditorBuffers(Protocol):
    """The files that a person's editor has open."""

    async def unsaved(self, path: Path, saved: str) -> str | None:
        """The editor's text of a file if it differs from the saved one. EditorSilent if it does not answer in time."""

    async def write(self, path: Path, text: str) -> bool:
        """Write a file through the editor. False if the editor offers no writes. EditorSilent if it fails."""


async def _at_once() -> None:
    """Nothing is recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What a tool works with: made by the task for each call."""

    workspace: Path
    cwd: Path  # the base of relative paths
    home: Path | None = None  # what `~` means at another place; None: the files are on this machine
    task: TaskId
    files: Files
    registry: Terminals
    talk: Talk
    store: Callable[[bytes, str], Blob]  # keeps an image, by content and media type
    seen: Mapping[Path, str | None] = field(default_factory=dict)  # digest of the version the task knows
    show: Callable[[Live], None] = lambda _: None
    started: Callable[[TerminalId, Path], None] = lambda *_: None  # a command prints into this spool
    recorded: Callable[[], Awaitable[None]] = _at_once  # returns when that is durable
    # Held while a call waits for a command; the second argument ends the wait
    waiting: Callable[[Execution, Callable[[], object]], AbstractContextManager[None]] = lambda _, __: nullcontext()
    hidden: Callable[[str], None] = lambda _: None  # a file was not touched, as an ignore file hides it
    settings: ToolSettings = ToolSettings()
    elsewhere: Callable[[Path], Awaitable[Terminal]] | None = None  # opens one for each approved command
    buffers: EditorBuffers | None = None  # of a person's editor, which knows of files that are not saved
    # A person types the secrets that commands ask for; held while a call waits for that. None: nobody does.
    secrets: Callable[[], AbstractContextManager[None]] | None = None
    servers: "Hub | None" = None  # MCP servers
    browser: "Browser | None" = None
    image_model: "ImageModel | None" = None
    sees: bool = False  # the model accepts images
    cache: Path | None = None  # a private folder for what can be made again; None: in memory
    wakes: bool = False  # a task at rest is woken by a command that it left running
    alone: bool = False  # nobody else sees these terminals, and nobody tells the model of them: it must look itself
    viewer: str | None = ""  # who looks at screens: it is told what changed since its last look. None: tell all of it


# Other names for the argument `path`, which models know from elsewhere
PATH_SPELLINGS: Mapping[str, str] = dict.fromkeys(("file_path", "filePath", "filename", "target_file", "file"), "path")


class Tool(ABC):
    """A call with its arguments. Subclasses are frozen dataclasses, their fields annotated with `Meta(description)`."""

    name: ClassVar[str]
    group: ClassVar[Group]
    description: ClassVar[str]
    needs: ClassVar[Need | None] = None  # without it the tool is not offered
    described: ClassVar[bool] = True  # to the model; else it is only understood, for models that know it from elsewhere
    parallel: ClassVar[bool] = False  # it only reads, and may run beside others
    spellings: ClassVar[Mapping[str, str]] = {}  # other names for its arguments, which models know from elsewhere

    @classmethod
    def tidy(cls, arguments: dict[str, object]) -> dict[str, object]:
        """Convert arguments of another shape that models know, before they are checked."""
        return arguments

    @abstractmethod
    async def prepare(self, bench: Bench) -> Ready:
        """Compute everything, change nothing. Raises ToolFailed, with words for the model, if it can't be done."""
