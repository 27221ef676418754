"""Read a command line as its shell would: shfmt's syntax tree, as JSON.

line ─caps→ shfmt --to-json (a process of milliseconds) → tree | Unreadable
         └→ plain words, once the parser has answered: their tree is known without it (plain_tree)

Whatever goes wrong (no parser, a crash, nonsense, no answer in time) is `Unreadable`, and the line is asked about.
The event loop stays free meanwhile.
"""

import asyncio
import functools
import json
import os
import re
import signal
import sys
import sysconfig
import unicodedata
from collections.abc import Mapping
from typing import cast

from tarmac.policy.verdict import Execute

LONGEST = 512  # characters
_PLAIN = re.compile(r"[A-Za-z0-9_%+:,./@-]+(?: [A-Za-z0-9_%+:,./@-]+)*")
_SPECIAL = frozenset(
    """
    if then elif else fi for foreach in do done end case esac while until select function time coproc repeat always
    declare typeset local export readonly nameref integer float let nocorrect noglob @test
""".split()
)


def plain_tree(line: str) -> Mapping[str, object] | None:
    """The syntax tree of a line that is one command of plain words."""
    if len(line) > LONGEST or not _PLAIN.fullmatch(line):
        return None
    words = line.split(" ")
    if words[0] in _SPECIAL:
        return None
    args: list[object] = []
    offset = 0
    for word in words:
        start, end = _place(offset), _place(offset + len(word))
        part = {"Type": "Lit", "Pos": start, "End": end, "ValuePos": start, "ValueEnd": end, "Value": word}
        args.append({"Pos": start, "End": end, "Parts": [part]})
        offset += len(word) + 1
    start, end = _place(0), _place(len(line))
    call = {"Type": "CallExpr", "Pos": start, "End": end, "Args": args}
    statement = {"Pos": start, "End": end, "Cmd": call, "Position": start}
    return {"Type": "File", "Pos": start, "End": end, "Stmts": [statement]}


def _place(offset: int) -> dict[str, int]:
    return {"Offset": offset, "Line": 1, "Col": offset + 1}


Tree = Mapping[str, object]

DIALECTS = {"bash": "bash", "sh": "posix", "dash": "posix", "ash": "posix", "ksh": "mksh", "mksh": "mksh", "zsh": "zsh"}
LARGEST_TREE = 1 << 20  # bytes of JSON: reading it blocks the event loop for 25 ms a megabyte
SYNTAX_ERROR = 1  # the parser's exit status; any other means that it failed itself
PIPE = 60_000  # bytes: what a pipe takes at once, so that nobody has to wait to write it

_answered: set[str] = set()  # parsers that have read a line in this process, and so are known to work


class Unreadable(Exception):
    """The line can't be read; `reason` says why, in plain words."""

    def __init__(self, reason: str, *, passing: bool = False, parser_failed: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.passing = passing or parser_failed  # a busy machine, and no property of the line
        self.parser_failed = parser_failed  # it did not run at all, so it will not read the next line either


def dialect_of(shell: str) -> str | None:
    """shfmt's name for the language of `shell`; None: it can't read that one."""
    return DIALECTS.get(os.path.basename(shell).lstrip("-"))


@functools.cache
def parser_path() -> str | None:
    """Where the parser is: beside our own Python first, so that no other file of that name is taken."""
    beside = [sysconfig.get_path("scripts"), os.path.dirname(sys.executable)]
    try:
        beside.append(sysconfig.get_path("scripts", f"{os.name}_user"))
    except KeyError:
        pass
    for place in beside:
        path = os.path.join(place, "shfmt")
        if os.access(path, os.X_OK):
            return path
    import shutil

    found = shutil.which("shfmt")
    return found if found and os.path.isabs(found) else None


def check_text(line: str, *, longest: int, deepest: int) -> None:
    """Refuse what nobody should have to read: too long, too deep, or with characters that don't show."""
    if len(line) > longest:
        raise Unreadable(f"it is {len(line):,} characters long; only {longest:,} are read")
    if not line.isascii() or not line.isprintable():
        for character in line:
            if character in "\n\t":
                continue
            kind = unicodedata.category(character)
            if kind in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
                raise Unreadable(f"it holds a character that doesn't show (U+{ord(character):04X})")
    depth = deepest_level = 0
    for character in line:
        if character in "({[":
            depth += 1
            deepest_level = max(deepest_level, depth)
        elif character in ")}]":
            depth = max(0, depth - 1)
    words = line.split()
    blocks = sum(words.count(word) for word in ("if", "do", "case", "then")) if len(words) > deepest else 0
    if deepest_level > deepest or line.count("`") > deepest or blocks > deepest:
        raise Unreadable("it is nested too deeply")


async def parse(line: str, dialect: str, *, timeout: float) -> Tree:
    """The syntax tree of `line`; Unreadable when there is none."""
    program = parser_path()
    if program is None:
        raise Unreadable("the parser (shfmt) is not installed", parser_failed=True)
    if program in _answered and (known := plain_tree(line)) is not None:
        return known
    tree = await parsed_by(program, line, dialect, timeout=timeout)
    _answered.add(program)
    return tree


async def check_parser(*, timeout: float = 5.0) -> str:
    """Why the parser can't run on this machine; empty when it can."""
    try:
        await parse("true", "bash", timeout=timeout)
    except Unreadable as error:
        return error.reason if error.parser_failed else ""
    return ""


async def parsed_by(program: str, line: str, dialect: str, *, timeout: float) -> Tree:
    """The tree that the parser itself gives."""
    data = line.encode("utf-8", "surrogatepass")
    if len(data) > PIPE:
        raise Unreadable("it is too long to be read")
    try:
        output, status = await _run([program, "-ln", dialect, "--to-json"], data, timeout)
    except TimeoutError:  # before OSError: it is one
        raise Unreadable("the parser took too long", passing=True) from None
    except OSError as error:
        raise Unreadable(f"the parser can't be started: {error.strerror}", parser_failed=True) from None
    if status not in (0, SYNTAX_ERROR):
        raise Unreadable(f"the parser failed: {_first_line(output)}", parser_failed=True)
    if status != 0:
        raise Unreadable(f"it can't be parsed: {_first_line(output)}")
    try:
        tree = json.loads(output.decode())
    except (ValueError, RecursionError):
        raise Unreadable("the parser gave no answer that can be read") from None
    if not isinstance(tree, dict):
        raise Unreadable("the parser gave no answer that can be read")
    if b"#" in data and b"\\\n" in data and _comment_goes_on(tree):
        raise Unreadable("a comment ends with a backslash: the parser takes the next line for a part of it")
    return cast(Tree, tree)


def _comment_goes_on(tree: object) -> bool:
    """Whether the parser read on past a comment's line. Shells do not; shfmt 3.14 does after a backslash."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            if "Hash" in node and "\n" in str(node.get("Text", "")):
                return True
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node
    return False


def _first_line(output: bytes) -> str:
    text = output.decode("utf-8", "replace").strip().split("\n")[0]
    text = text.removeprefix("<standard input>:")
    return "".join(c if c.isprintable() else "?" for c in text)[:160] or "the parser failed"


async def _run(argv: list[str], data: bytes, timeout: float) -> tuple[bytes, int]:
    """Run the parser on `data`; what it printed, and its status. Ended, whatever happens, before this returns.

    It prints in a hundred small pieces. They go to a file in memory, so that only its end wakes us up.
    """
    output = os.memfd_create("tarmac-parser") if hasattr(os, "memfd_create") else _unnamed_file()
    status = -1
    try:
        ending, pid = _start(argv, data, output)
        try:
            await _readable(ending, timeout)
            status = await _reap(pid)
        finally:
            os.close(ending)
            if status == -1:
                _end(pid)
        size = os.fstat(output).st_size
        if size > LARGEST_TREE:
            raise TimeoutError
        return os.pread(output, size, 0), status
    finally:
        os.close(output)


async def _readable(fd: int, timeout: float) -> None:
    """Return when `fd` can be read; TimeoutError. (asyncio.timeout would cost as much as all the rest of it.)"""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def once(error: type[TimeoutError] | None = None) -> None:
        loop.remove_reader(fd)  # it stays readable: without this the loop would spin
        if ready.done():
            return
        if error is not None:
            ready.set_exception(error)
        else:
            ready.set_result(None)

    loop.add_reader(fd, once)
    late = loop.call_later(timeout, once, TimeoutError)
    try:
        await ready
    finally:
        late.cancel()
        if ready.cancelled():
            loop.remove_reader(fd)


def _unnamed_file() -> int:
    import tempfile

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _pipe() -> tuple[int, int]:
    return os.pipe2(os.O_CLOEXEC) if hasattr(os, "pipe2") else os.pipe()


def _start(argv: list[str], data: bytes, output: int) -> tuple[int, int]:
    """Start the parser with its whole input already in the pipe: an fd that ends when it ends, and its pid."""
    fds: list[int] = []
    try:
        stdin, feed = _pipe()
        fds += [stdin, feed]
        actions = [
            (os.POSIX_SPAWN_DUP2, stdin, 0),
            (os.POSIX_SPAWN_DUP2, output, 1),
            (os.POSIX_SPAWN_DUP2, output, 2),
        ]
        ending = -1
        if not _has_pidfd():  # the parser holds one end of a pipe; when it is gone we can read the end of file
            ending, held = _pipe()
            fds += [ending, held]
            actions.append((os.POSIX_SPAWN_DUP2, held, 3))
        os.set_blocking(feed, False)
        if os.write(feed, data) != len(data):
            raise OSError(0, "its input does not fit")
        pid = os.posix_spawn(
            argv[0],
            argv,
            {"GOMAXPROCS": "1", "GOGC": "off", "GOMEMLIMIT": "256MiB"},  # it lives for a millisecond
            file_actions=actions,
            setsigmask=[],
            setsigdef=[signal.SIGPIPE],
        )
        if ending >= 0:
            fds.remove(ending)
            return ending, pid
        try:
            return os.pidfd_open(pid), pid
        except OSError:  # no descriptor is left
            _end(pid)
            raise
    finally:
        for fd in fds:
            os.close(fd)


@functools.cache
def _has_pidfd() -> bool:
    """Whether this system has pidfds. Without one, a pipe tells of the end, a little early."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True


async def _reap(pid: int) -> int:
    """Its exit status. Its output has ended, so it is all but gone."""
    for pause in (0, 0.0005, 0.001, 0.005, 0.02, 0.05):
        try:
            ended, status = os.waitpid(pid, os.WNOHANG)  # noqa: ASYNC222 it does not block
        except ChildProcessError:  # somebody else reaped it: only its output tells whether it worked
            return 0
        if ended:
            return os.waitstatus_to_exitcode(status)
        await asyncio.sleep(pause)
    return -1


def _end(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    except (ProcessLookupError, ChildProcessError):
        pass


# No quotes, no expansions, nothing active in any shell.
_SAME_EVERYWHERE = re.compile(r"[A-Za-z0-9_./=+-]+(?:[ \t]+[A-Za-z0-9_./:=+-]+)*")
_FISH_WORD = re.compile(r"""(?:[A-Za-z0-9_./:=+,@%-]|'[^'\\\n]*'|"[^"\\$\n]*")+""")
_FISH_OPERATOR = re.compile(r"&&|\|\||\||;|\n|2>/dev/null(?=[ \t;|\n]|$)|2>&1(?=[ \t;|\n]|$)")
# Programs that are a builtin, a function or an alias in none of these shells: there a word is a word.
_PROGRAMS = frozenset(
    """
    git gh glab npm pnpm yarn node python python3 pip pip3 cargo rustc rustup go docker docker-compose podman kubectl
    helm rg fd jq make java javac ruby gem php composer dotnet terraform tofu uname whoami hostname id lsblk lscpu
    file stat head tail wc grep nl od xxd sha256sum md5sum du df free uptime nproc arch basename dirname realpath
    readlink
""".split()
)
# Of fish's own: to read them as bash would be to read another language.
_FISH_OWN = frozenset(
    """
    type command builtin time history jobs set umask ulimit eval exec source . string math count contains random read
    begin end if else for while switch case function return break continue abbr alias bind complete commandline emit
    functions status trap wait argparse disown fg bg dirh nextd prevd open psub vared test [ printf
""".split()
)
_JOINING = {"and": "&&", "or": "||"}


def is_powershell(shell: str) -> bool:
    """Whether a shell is PowerShell, or cmd, which it grew out of."""
    name = shell.rpartition("/")[2].rpartition("\\")[2].lower().removesuffix(".exe")
    return name in ("pwsh", "powershell", "pwsh-preview", "cmd")


def same_in_bash(action: Execute) -> str | None:
    """The line as bash would have it, when it means the same there; None when it may not."""
    assert dialect_of(action.shell) is None
    text = action.command.strip()
    if action.shell.rpartition("/")[2].lstrip("-") == "fish":
        return _from_fish(text)
    words = text.split()
    if not _SAME_EVERYWHERE.fullmatch(text) or words[0] not in _PROGRAMS:
        return None
    # PowerShell takes `--` for itself, and `-a.b` for two words.
    strange = any(word == "--" or re.match(r"-[^=]*[.:]", word) for word in words)
    return None if strange else text


def _from_fish(text: str) -> str | None:
    pieces: list[str] = []
    first = True  # whether a command begins here
    at = 0
    while at < len(text):
        if text[at] in " \t":
            at += 1
            continue
        if operator := _FISH_OPERATOR.match(text, at):
            at = operator.end()
            if operator[0].startswith("2>"):
                if first:
                    return None
                pieces.append(operator[0])
                continue
            if first and operator[0] not in ("\n", ";"):
                return None
            pieces.append(operator[0])
            first = True
            continue
        word = _FISH_WORD.match(text, at)
        if word is None:
            return None
        at = word.end()
        if first and word[0] in _JOINING:
            while pieces and pieces[-1] in (";", "\n"):
                pieces.pop()
            if not pieces or pieces[-1] in ("&&", "||", "|"):
                return None
            pieces.append(_JOINING[word[0]])
            continue
        if first and (word[0] in _FISH_OWN or word[0] == "not" or "=" in word[0] or set(word[0]) & set("'\"")):
            return None
        if pieces[-1:] == ["echo"] and word[0].startswith("-"):
            return None  # fish has options of its own for it
        first = False
        pieces.append(word[0])
    return " ".join(pieces) if pieces else None
