"""What the user allowed before: grants (exact lines and prefixes, for a task, a workspace or everywhere), and rules.

GrantFile(path).covers_line(…) / covers_words(…) → the id of a grant      (what the policy asks)
               .add(…) · revoke(…) · clear(…) · listing()                 (what a person does)

refusal(words) · line_refusal(line)     → why this can't be granted, or ""
fits(prefix, words)                     → whether words begin with it, and what follows does not change what they do
suggest(line, parts, …)                 → what the person could be offered: the exact line, and a prefix for each part
load_rules(path) → PrefixRules          → what the user's own file of rules allows, asks and denies

A program that runs programs is never allowed by its first word: the tables say of each program what may be granted.

The file of grants belongs to the user and is private. It is written whole or not at all, and never comes from a
workspace. If it can't be trusted (unreadable, damaged, writable by others), nothing in it counts, `trouble` says why,
and every command asks. The next write moves the file aside, so nothing is lost. A grant for `once` is only in memory.
No grant can be stored for a critical command, and the policy would not apply one.
"""

import fcntl
import json
import os
import re
import secrets
import shlex
import stat
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, cast, get_args

from tarmac.errors import BadRequest, StateUnavailable
from tarmac.events import TaskId
from tarmac.paths import private_dir
from tarmac.policy.budget import first
from tarmac.policy.programs.program import Grammar, Program, Trait, known, read_programs
from tarmac.policy.verdict import RISKS, Part, Risk, SuggestedGrant
from tarmac.policy.visible import is_plain

Scope = Literal["once", "task", "workspace", "everywhere"]
VERSION = 1
MOST_BYTES = 4 << 20
MOST_GRANTS = 2000
_Signature = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Grant:
    """One thing a person allowed, for whom, and when."""

    id: str
    _: KW_ONLY
    kind: Literal["line", "prefix", "use"]  # use: of a host, or a tool of an MCP server
    text: str  # the exact line; of a prefix or a use, how a person reads it
    words: tuple[str, ...] = ()  # of a prefix or a use
    scope: Scope
    workspace: str = ""  # for scope "workspace"
    task: str = ""  # for scopes "task" and "once"
    granted: str  # when, in UTC: 2026-11-15T23:20:05Z
    origin: str = ""  # through which front end

    def reaches(self, *, workspace: Path, task: TaskId | None) -> bool:
        """Whether it is meant for this workspace and task."""
        match self.scope:
            case "everywhere":
                return True
            case "workspace":
                return self.workspace == _resolved(workspace)
            case "task":
                return bool(self.task) and self.task == task
            case "once":
                return self.task == (task or "")

    @property
    def where(self) -> str:
        """Its scope as a person reads it."""
        return {"workspace": f"in {self.workspace}", "task": f"in task {self.task}"}.get(self.scope, self.scope)


class GrantFile:
    """The grants of one user. Whoever else changes the file is noticed at the next question."""

    def __init__(self, path: Path, *, now: Callable[[], float] = time.time, patience: float = 5.0) -> None:
        self.path = path
        self._name = f"grants in {path}"
        self._now = now
        self._patience = patience  # for another Tarmac that writes
        self._once: list[Grant] = []
        self._seen: _Signature | None = None
        self._stored: tuple[Grant, ...] = ()
        self._trouble: str | None = None

    # What the policy asks

    @property
    def trouble(self) -> str | None:
        """Why the stored grants can't be trusted: then everything asks."""
        self._refresh()
        return self._trouble

    def covers_line(self, line: str, *, cwd: Path, workspace: Path, task: TaskId | None) -> str | None:
        """The id of a grant for exactly this line. (`cwd` does not narrow it: a scope does.)"""
        return self._first(lambda each: each.kind == "line" and each.text == line, workspace=workspace, task=task)

    def covers_words(self, words: tuple[str, ...], *, workspace: Path, task: TaskId | None) -> str | None:
        """The id of a grant for a prefix of these words. Redirections and variables in front are not its business."""
        return self._first(
            lambda each: each.kind == "prefix" and fits(each.words, words), workspace=workspace, task=task
        )

    def covers_use(self, words: tuple[str, ...], *, workspace: Path, task: TaskId | None) -> str | None:
        """The id of a grant for exactly this host, or this tool as its server describes it."""
        return self._first(lambda each: each.kind == "use" and each.words == words, workspace=workspace, task=task)

    def _first(self, matches: Callable[[Grant], bool], *, workspace: Path, task: TaskId | None) -> str | None:
        self._refresh()
        if self._trouble:
            return None
        for each in (*self._stored, *self._once):  # one that lasts is used before one that is used up
            if matches(each) and each.reaches(workspace=workspace, task=task):
                return each.id
        return None

    def use(self, id: str) -> None:
        """What a grant covers is about to run: one for `once` is used up."""
        self._once = [each for each in self._once if each.id != id]

    # What a person does

    def listing(self) -> tuple[Grant, ...]:
        """All that is granted, oldest first; StateUnavailable when the file can't be trusted."""
        self._refresh()
        if self._trouble:
            raise StateUnavailable(self._trouble, hint=f"look at {self.path}; `tarmac grants clear` puts it aside")
        return (*self._stored, *self._once)

    def add(
        self,
        wanted: SuggestedGrant,
        *,
        scope: Scope,
        risk: Risk,
        workspace: Path | None = None,
        task: TaskId | None = None,
        origin: str = "",
    ) -> Grant:
        """Remember it. BadRequest for what can't be granted. What is granted already is not added again."""
        if risk == "critical":
            raise BadRequest("a critical command can't be allowed for good", hint="it is asked about each time")
        why = _refusal(wanted.kind, wanted.text, wanted.words)
        if why:
            raise BadRequest(f"this can't be allowed for good: {why}", hint="allow it once")
        if scope == "workspace" and workspace is None:
            raise BadRequest("a grant for a workspace needs one")
        if scope == "task" and not task:
            raise BadRequest("a grant for a task needs one")
        new = Grant(
            secrets.token_hex(4),
            kind=wanted.kind,
            text=" ".join(wanted.words) if wanted.kind == "prefix" else wanted.text,
            words=() if wanted.kind == "line" else wanted.words,
            scope=scope,
            workspace=_resolved(workspace) if scope == "workspace" and workspace else "",
            task=str(task or "") if scope in ("task", "once") else "",
            granted=datetime.fromtimestamp(self._now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            origin=origin,
        )
        if scope == "once":
            self._once.append(new)
            return new
        with self._changing() as grants:
            same = next((each for each in grants if _sense(each) == _sense(new)), None)
            if same is None and len(grants) >= MOST_GRANTS:
                raise StateUnavailable(
                    f"there are {MOST_GRANTS:,} grants already", hint="revoke some: tarmac grants list"
                )
            if same is None:
                grants.append(new)
        return same or new

    def revoke(self, id: str) -> Grant:
        """Take one back, by its id or an unambiguous beginning of it."""
        once = [each for each in self._once if each.id == id]
        if once:
            self.use(id)
            return once[0]
        with self._changing() as grants:
            found = [each for each in grants if each.id.startswith(id)] if id else []
            if len(found) != 1:
                what = f"there is no grant `{id}`" if not found else f"`{id}` is the beginning of {len(found)} grants"
                raise BadRequest(what, hint="`tarmac grants list` shows their ids")
            grants.remove(found[0])
        return found[0]

    def clear(self, *, workspace: Path | None = None, task: TaskId | None = None) -> int:
        """Take all back, or those of a workspace or a task; how many there were."""
        self._once = [] if task is None and workspace is None else [each for each in self._once if each.task != task]
        place = _resolved(workspace) if workspace else None

        def goes(each: Grant) -> bool:
            if place is None and task is None:
                return True
            return (each.scope == "workspace" and each.workspace == place) or (
                each.scope == "task" and each.task == task
            )

        with self._changing() as grants:
            kept = [each for each in grants if not goes(each)]
            gone = len(grants) - len(kept)
            grants[:] = kept
        return gone

    # The file

    def _refresh(self) -> None:
        """Read it again if it changed. It is looked at once for each line, so all its commands get the same answer."""
        if not first(self._name):
            return
        try:
            found = os.lstat(self.path)
        except FileNotFoundError:
            self._seen, self._stored, self._trouble = None, (), None
            return
        except (OSError, ValueError) as error:
            self._seen, self._stored, self._trouble = None, (), f"the grants can't be read: {error}"
            return
        signature = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        if signature != self._seen:
            self._stored, self._trouble = _read(self.path)
            self._seen = signature

    @contextmanager
    def _changing(self) -> Iterator[list[Grant]]:
        """The grants to change, under a lock; written when the block ends well."""
        try:
            private_dir(self.path.parent)
            with _lock(self.path.with_suffix(".lock"), self._patience):
                stored, trouble = _read(self.path)
                grants = list(stored)
                yield grants
                if trouble:
                    aside = self.path.with_name(f"{self.path.name}.damaged-{int(self._now())}-{secrets.token_hex(2)}")
                    self.path.rename(aside)
                if trouble or tuple(grants) != stored:
                    _write(self.path, grants)
        except OSError as error:
            if isinstance(error, StateUnavailable | BadRequest):
                raise
            raise StateUnavailable(
                f"the grants can't be written: {error.strerror or error}", hint=str(self.path)
            ) from error
        self._seen = None


def _resolved(path: Path) -> str:
    return os.path.realpath(path)


def _refusal(kind: str, text: str, words: tuple[str, ...]) -> str:
    if kind == "prefix":
        return refusal(words)
    if kind == "use":
        return (
            "" if words and all(is_plain(each) for each in (text, *words)) else "it has characters that can't be seen"
        )
    return line_refusal(text)


def _sense(grant: Grant) -> tuple[str, ...]:
    return (grant.kind, grant.scope, grant.workspace, grant.task, grant.text, *grant.words)


def _read(path: Path) -> tuple[tuple[Grant, ...], str | None]:
    """What the file holds, or why that can't be trusted."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return (), None
    except (OSError, ValueError) as error:
        return (), f"the grants in {path} can't be read: {getattr(error, 'strerror', None) or error}"
    try:
        if why := _distrust(os.fstat(fd)) or _distrust(path.parent.stat(), folder=True):
            return (), f"the grants in {path} can't be trusted: {why}"
        raw = b""
        while len(raw) <= MOST_BYTES and (piece := os.read(fd, 1 << 20)):
            raw += piece
        return _parsed(raw), None
    except OSError as error:
        return (), f"the grants in {path} can't be read: {error.strerror}"
    except (ValueError, KeyError, TypeError, RecursionError):
        return (), f"the grants in {path} are damaged"
    finally:
        os.close(fd)


def _distrust(found: os.stat_result, *, folder: bool = False) -> str:
    what = "its folder" if folder else "it"
    if found.st_uid not in (os.geteuid(), 0):
        return f"{what} belongs to another user"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"others may write to {what}"
    return "" if folder or stat.S_ISREG(found.st_mode) else "it is not a file"


def _parsed(raw: bytes) -> tuple[Grant, ...]:
    """ValueError and its kin for whatever we would not have written."""
    if len(raw) > MOST_BYTES:
        raise ValueError("too large")
    read = json.loads(raw)
    if not isinstance(read, dict) or read["version"] != VERSION:
        raise ValueError("of another version")
    grants = tuple(_grant(each) for each in read["grants"])
    if len({each.id for each in grants}) != len(grants):
        raise ValueError("an id twice")
    return grants


def _grant(fields: object) -> Grant:
    if not isinstance(fields, dict):
        raise ValueError("no grant")
    words = fields.pop("words", [])
    if not isinstance(words, list) or not all(isinstance(each, str) for each in (*fields.values(), *words)):
        raise ValueError("a field of the wrong kind")
    grant = Grant(words=tuple(words), **fields)
    why = _refusal(grant.kind, grant.text, grant.words)
    if why or grant.kind not in ("line", "prefix", "use") or grant.scope not in get_args(Scope)[1:] or not grant.id:
        raise ValueError(why or "no grant")
    return grant


def _write(path: Path, grants: Sequence[Grant]) -> None:
    """All of it or nothing: a new file, on the disk, takes the old one's name."""
    text = json.dumps({"version": VERSION, "grants": [asdict(each) for each in grants]}, indent=1, ensure_ascii=True)
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "w") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


@contextmanager
def _lock(path: Path, patience: float) -> Iterator[None]:
    """One writer at a time, among all of this user's Tarmacs."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        end = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise StateUnavailable(
                        "another Tarmac is changing the grants", hint=f"who has {path} open?"
                    ) from None
                time.sleep(0.01)
        yield
    finally:
        os.close(fd)


LONGEST_LINE = 4096
_VERSION = re.compile(r"[-\d.]*\d$")  # python3.11, pip3, lua5.4
_TARMAC = re.compile(r"(?:^|[\s;&|(`/])tarmac(?=\s|$)")
_WRITES_OR_RUNS = re.compile(
    r"-o|-?-out(put)?([-_]?(dir|file|path|directory|document))?|-?-exec(-\w+)?|--eval|--command|--shell|--pager|--editor"
    r"|--config([-_](file|path|dir))?|--plugins?|--require|--load(-\w+)?|--init-\w+|--rcfile|--log-?file|--save(-\w+)?"
    r"|--report-?file|--(cpu|mem)profile|--upload-pack|--receive-pack|--sandbox|--prefix|--root|--directory|--cwd"
)
# `https://…`, `git@host:…`, `git+ssh://…`
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://|[\w.-]+@[\w.-]+:|[\w.-]+\.[a-z]{2,}:(?!\d+$)")
_SCOPED_PACKAGE = re.compile(r"@[a-z0-9~][\w.-]*/[\w.-]+(@[\w.^~<>=*-]+)?")
_MAKE_WORD = re.compile(r"-[jskBnr]\d*|[A-Za-z][\w./:-]*", re.ASCII)
_PLAIN_WORD = re.compile(r"[A-Za-z][\w:.-]*", re.ASCII)
# `python -m` with one of these is no better than `python -c`.
_MODULES_WHOLE_LINE = frozenset("pdb runpy timeit code cProfile profile trace pip venv http.server IPython".split())


def refusal(words: Sequence[str]) -> str:
    """Why all that begins with `words` can't be allowed; empty when it can."""
    if not words or not words[0]:
        return "there is no first word"
    if any(not is_plain(word) for word in words):
        return "it has characters that can't be seen"
    if "=" in words[0]:
        return "a variable in front can change what any program does"
    name = words[0].rpartition("/")[2]
    if known(name).grant not in ("line", "command"):
        name = _VERSION.sub("", name) or name
    program, command = known(name), words[1] if len(words) > 1 else ""
    pair = f"{name} {command}"
    if command in program.grant_line:
        return f"`{pair}` can run any program: only a whole line can be allowed"
    match program.grant:
        case "never":
            return f"`{name}` itself can't be allowed for good"
        case "line":
            return f"`{name}` can run any program: only a whole line can be allowed"
        case "script":
            return _script(program, words)
        case "command":
            if not _PLAIN_WORD.fullmatch(command):
                return f"`{name}` alone can do anything, so add one of its commands"
            if command in program.grant_program:
                return refusal(words[2:]) if len(words) > 2 else f"`{pair}` can run any program: say which"
            if command in program.grant_words and (len(words) < 3 or not _PLAIN_WORD.fullmatch(words[2])):
                return f"`{pair}` alone can do too much: say what it is to do"
    return ""


def line_refusal(line: str) -> str:
    """Why exactly this line can't be allowed for good; empty when it can."""
    if not line.strip():
        return "there is no command"
    if len(line) > LONGEST_LINE:
        return f"it is longer than {LONGEST_LINE:,} characters"
    if not is_plain(line, lines=True):
        return "it has characters that can't be seen"
    return "`tarmac` itself can't be allowed for good" if _TARMAC.search(line) else ""


def fits(prefix: Sequence[str], words: Sequence[str]) -> bool:
    """Whether `words` begin with `prefix`, word by word, and what follows does not change what they do."""
    if not prefix or tuple(words[: len(prefix)]) != tuple(prefix):
        return False
    if Trait.MAKE_WORDS in known(prefix[0].rpartition("/")[2]).traits:  # `make test -f /tmp/other`, `make test SHELL=…`
        return all(_MAKE_WORD.fullmatch(word) for word in words[len(prefix) :])
    further = words[len(prefix) :]
    name = _name(prefix[0])
    if any(_elsewhere(word, name) for word in further):
        return False
    programs = [known(_name(word)) for word in prefix]  # also those of `uv run pytest`
    turning = [option for program in programs for option in program.turning]
    single = any(Trait.SINGLE_DASH in program.traits for program in programs)
    return not any(_is_option(word, option, single=single) for word in further for option in turning)


def _elsewhere(word: str, name: str) -> bool:
    """A word that no prefix covers: words from a file, an option that writes or runs, another machine."""
    if word.startswith("-"):
        if Trait.BUILDS in known(name).traits and word.startswith("-o"):
            return False  # to write is what they are for
        return _WRITES_OR_RUNS.fullmatch(word.partition("=")[0]) is not None
    if word.startswith("@"):
        return not (Trait.SCOPED in known(name).traits and _SCOPED_PACKAGE.fullmatch(word))
    return _ADDRESS.match(word) is not None


def _name(word: str) -> str:
    name = word.rpartition("/")[2]
    return _VERSION.sub("", name) or name


def _is_option(word: str, option: str, *, single: bool) -> bool:
    """`option` itself, with a value, attached or bundled, shortened, or with one dash more."""
    given = word.partition("=")[0]
    if option == "@":
        return word.startswith("@")
    if len(option) == 2 and not single:
        return word.startswith(option) or (re.fullmatch(r"-[A-Za-z]+", given) is not None and option[1] in given)
    if len(option) == 2:
        return given == option or (option == "-B" and word.startswith(option))
    if given in (option, f"-{option}"):
        return True
    return option.startswith("--") and len(given) > 3 and option.startswith(given)


def _script(program: Program, words: Sequence[str]) -> str:
    name = program.name
    match words[1:]:
        case []:
            return f"`{name}` alone runs anything, so add the script"
        case ["-m", module, *_] if Trait.MODULES in program.traits and module not in _MODULES_WHOLE_LINE:
            return "" if _PLAIN_WORD.fullmatch(module) else "that is not a module"
        case [first, *_] if first.startswith("-") or not first:
            return f"`{name} {first}` can run anything: only a whole line can be allowed"
    return ""


def suggest(line: str, parts: Sequence[Part], *, risk: Risk, by_prefix: bool = True) -> tuple[SuggestedGrant, ...]:
    """What "always allow" could store, the narrowest first.

    Nothing for a critical line, for one with characters that can't be seen, or for one whose words are known only when
    it runs. A prefix is offered for parts up to medium risk that are not allowed anyway, if one would cover them.
    """
    if risk == "critical" or not parts or line_refusal(line):
        return ()
    if any(part.words is None or part.risk == "critical" for part in parts):
        return ()
    offered = [SuggestedGrant("line", line)]
    asked = [part for part in parts if part.decision == "ask"]
    if by_prefix and len(asked) == 1 and asked[0].risk in ("low", "medium") and asked[0].words:
        prefix = _prefix(asked[0].words)
        # What a prefix would not cover is not offered: a file written, a variable in front.
        covers = bool(prefix) and fits(prefix, asked[0].words)
        if covers and asked[0].text.startswith(prefix[0]) and not set("<>") & set(asked[0].text):
            offered.append(SuggestedGrant("prefix", " ".join(prefix), prefix))
    return tuple(offered)


def _prefix(words: tuple[str, ...]) -> tuple[str, ...]:
    """The shortest prefix fit to be granted that says what is done; none when there is no good one."""
    name = words[0].rpartition("/")[2]
    program = known(name)
    if Trait.SUGGEST_LINE in program.traits or not set(program.suggest_line).isdisjoint(words[1:2]):
        return ()
    if not set(program.grant_program).isdisjoint(words[1:2]):  # uv run
        inner = _prefix(words[2:]) if len(words) > 2 else ()
        return (*words[:2], *inner) if inner else ()
    alone = "/" in words[0] or Trait.SUGGEST_NAME in known(_name(name)).traits
    for length in range(1 if alone else 2, min(len(words), 4) + 1):
        prefix = words[:length]
        if any(not word or set(word) & set(" \t'\"\\$`*?[]{}~;&|<>()!#") for word in prefix):
            return ()  # it would have to be quoted to be read
        if not refusal(prefix):
            said = alone or known(_name(name)).grant == "script" or _PLAIN_WORD.fullmatch(prefix[1])
            return prefix if said else ()
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixRules:
    """The user's rules: prefixes of whole words. The longest that matches wins; deny wins a tie."""

    allow: tuple[tuple[str, ...], ...] = ()
    deny: tuple[tuple[str, ...], ...] = ()
    ask: tuple[tuple[str, ...], ...] = ()  # always asked about; as long as an allow rule, it wins
    risks: tuple[tuple[tuple[str, ...], Risk], ...] = ()  # prefixes, and how dangerous they are at least
    programs: Mapping[str, Grammar] = field(default_factory=dict)  # programs the user knows to only read
    trouble: str | None = field(default=None)  # why the file they come from can't be trusted: then everything asks


_MOST_RULE_BYTES = 1 << 20
_RULE_KEYS = frozenset(["allow", "ask", "deny", "read", "risk"])


def load_rules(path: Path) -> PrefixRules:
    """The user's own rules, from one TOML file outside of every workspace; none when there is no such file.

        allow = ["npm test", "make lint"]        # prefixes of whole words
        ask = ["docker", "git commit --amend"]   # always asked about, at every level, whatever was granted
        deny = ["git push"]

        [risk]                                   # at least this dangerous: medium, high or critical
        high = ["make release"]
        critical = ["./deploy production"]       # no grant and no level allows it

        [read.mytool]                            # a program known to only read, with the keys of rules.ReaderFields
        why = "lists my things"
        short = "la"
        operands = "path"

    It never raises. If the file can't be trusted, `trouble` says why, and everything asks.
    """
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            if why := _distrust(found):
                return PrefixRules(trouble=f"the rules in {path} can't be trusted: {why}")
            raw = file.read(_MOST_RULE_BYTES + 1)
    except FileNotFoundError:
        return PrefixRules()
    except OSError as error:
        return PrefixRules(trouble=f"the rules in {path} can't be read: {error.strerror}")
    try:
        return _parsed_rules(raw)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return PrefixRules(trouble=f"the rules in {path} make no sense: {error}")


def _parsed_rules(raw: bytes) -> PrefixRules:
    if len(raw) > _MOST_RULE_BYTES:
        raise ValueError("they are too long")
    data = tomllib.loads(raw.decode("utf-8"))
    if unknown := data.keys() - _RULE_KEYS:
        raise ValueError(f"`{min(unknown)}` is not known")
    return PrefixRules(
        allow=prefixes(data.get("allow", ())),
        deny=prefixes(data.get("deny", ())),
        ask=prefixes(data.get("ask", ())),
        risks=_risks(data.get("risk", {})),
        programs=read_programs(data.get("read", {})),
    )


def _risks(table: Mapping[str, Sequence[object]]) -> tuple[tuple[tuple[str, ...], Risk], ...]:
    if unknown := table.keys() - set(RISKS[1:]):
        raise ValueError(f"`{min(unknown)}` is not a risk: medium, high or critical")
    return tuple((rule, cast("Risk", risk)) for risk, lines in table.items() for rule in prefixes(lines))


def prefixes(lines: Sequence[object]) -> tuple[tuple[str, ...], ...]:
    """Prefixes of whole words, from lines as a person writes them."""
    if not isinstance(lines, list | tuple) or not all(isinstance(line, str) for line in lines):
        raise ValueError("a rule is a line of words")
    found = [tuple(shlex.split(cast(str, line))) for line in lines]
    if not all(found):
        raise ValueError("a rule without words would fit everything")
    return tuple(found)
