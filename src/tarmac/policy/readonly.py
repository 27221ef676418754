"""Prove that a simple command only reads, and say how to run it without a shell. Whatever isn't proven asks.

Simple → prove() → Proof(stage, paths looked at) | Unproven(reason)

The command word must be written plainly; every other word must be certain. A pattern is expanded here and now, and the
names it gives are judged like typed ones; where the directory doesn't exist, a pattern passes only if nothing it could
become is an option that does more than read.
"""

import fnmatch
import itertools
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from tarmac.dataclass import dataclass
from tarmac.policy.checks import FURTHER, REPLACEMENTS
from tarmac.policy.command import Redirect, Simple
from tarmac.policy.files import Files, Look
from tarmac.policy.grammar import Program, Reading, Unproven, match, programs, versions
from tarmac.policy.handed import (
    FILTERS,
    METADATA,
    READERS,
    check_found,
    check_pattern,
    exec_of_plain_files,
    of_whole_names,
    plain_files,
)
from tarmac.policy.patterns import expand
from tarmac.policy.places import Ground, is_secret, listable
from tarmac.policy.repository import check_repository
from tarmac.policy.spelling import program_name, variables, written_out
from tarmac.policy.verdict import STATUS, Stage
from tarmac.policy.witness import note
from tarmac.policy.words import Word

_ENDLESS = ("/dev/zero", "/dev/random", "/dev/urandom", "/dev/full", "/dev/tty")
MOST_NAMES = 500  # that a pattern may become
MOST_FOLDERS = 40  # in a pattern
_SAFE_WRAPPERS = {"timeout": 1, "nice": 0, "stdbuf": 0, "command": 0, "nohup": 0}
# Programs whose options take patterns and formats: a slash in them is text.
_TEXT_VALUES = frozenset(
    """
    grep egrep fgrep rg ag sed awk gawk mawk find fd fdfind date cut sort paste git printf zgrep man tree
""".split()
)
# Letters of other alphabets that look like ours.
_LOOKALIKES = frozenset("аеорсухіјѕһԁԛԝАВЕКМНОРСТУХІЈЅαοινρτυκΑΒΕΖΗΙΚΜΝΟΡΤΥΧ")


@dataclass(frozen=True, slots=True)
class Proof:
    """Why a command is harmless, and its stage of the plan."""

    stage: Stage
    rule: str
    why: str
    before: tuple[tuple[str, ...], ...] = ()  # what the stages before it must be, in place of what is written


@dataclass(frozen=True, slots=True)
class Prover:
    """Proves commands in one place."""

    files: Files
    ground: Ground
    extra: Callable[[str], Program | None]  # what the user's own rules know

    def prove(self, simple: Simple) -> Proof:
        """The proof; Unproven when there is none."""
        if not simple.words:
            raise Unproven("it holds no command")
        if not self.ground.inside:
            raise Unproven("it runs outside of the workspace")
        first = simple.words[0]
        if not (first.plain and first.literal):
            raise Unproven("its command is not written plainly")
        front = variables(simple.assigns)
        words = self._expand(simple.words)
        if any(looks_alike(word) for word in words):
            raise Unproven("it holds letters that only look like others")
        if any(STATUS in word for word in words) and words[0] not in ("echo", "printf", "test", "["):
            raise Unproven("it uses the status of another command")
        streams = _streams(simple.redirects)
        if streams.stdin is not None:
            self._check_path(streams.stdin, content=True)
            self._check_end(streams.stdin)
        came_from = (
            program_name(simple.upstream[0].name or "", workspace=self.ground.workspace) if simple.upstream else ""
        )
        if came_from in ("env", "printenv") and _asks_for_secret(words):
            raise Unproven("it looks for secrets in the environment")
        name = program_name(words[0], workspace=self.ground.workspace)
        proof = self._prove_words((name, *words[1:]), upstream=simple.upstream)
        own = proof.stage.words
        if name != words[0]:
            if own[0] != name:
                raise Unproven(f"the plan has another program in place of `{words[0]}`")
            own = (words[0], *own[1:])
        return replace(proof, stage=replace(streams, words=(*front, *own)))

    def _expand(self, words: Sequence[Word]) -> tuple[str, ...]:
        """The words as the program gets them; Unproven when that isn't certain."""
        found: list[str] = []
        exists = os.path.isdir(self.ground.cwd)
        for word in words:
            if word.text is None:
                raise Unproven(f"`{word.source}` is not known before it runs")
            if word.home:
                raise Unproven("~ leads out of the workspace")
            for text, pattern in written_out(word):
                found += self._names(word, text, words[0].text, exists=exists) if pattern else [text]
        return tuple(found)

    def names(self, word: Word) -> list[str]:
        """What one word of a loop's list becomes; no option, as nothing is run with it alone."""
        if word.text is None or word.home:
            raise Unproven(f"`{word.source}` is not known before it runs")
        exists = os.path.isdir(self.ground.cwd)
        found: list[str] = []
        for text, pattern in written_out(word):
            found += self._names(word, text, "echo", exists=exists) if pattern else [text]
        return found

    def _names(self, word: Word, pattern: str, command: str | None, *, exists: bool) -> list[str]:
        """What a pattern becomes here and now; itself when nothing matches."""
        if not word.plain or re.search(r"\[[\^:]|\[\[|\\", pattern):
            raise Unproven(f"the pattern `{word.source}` is not read here")
        if not listable(self.ground.locate(re.split(r"[*?\[]", pattern)[0].rpartition("/")[0] or ".")):
            raise Unproven(f"`{word.source}` gives names from outside of the workspace")
        names = sorted(_matching(pattern, self.ground.cwd)) if exists else []
        if len(names) > MOST_NAMES:
            raise Unproven(f"`{word.source}` matches more than {MOST_NAMES} names")
        if not exists and pattern[0] in "*?[" and not _any_option_reads(command):
            raise Unproven(f"a name that matches `{word.source}` could be an option")
        if not names and _may_be_secret(pattern):
            raise Unproven(f"`{word.source}` may be a file of secrets")
        return names or [pattern]

    def _prove_words(self, words: tuple[str, ...], *, upstream: tuple[Simple, ...] = ()) -> Proof:
        name = words[0]
        known = versions()
        if len(words) == 2 and known.answer(name, words[1]):
            self._check_unless(name)
            return Proof(Stage(words), "read.version", "prints its version or its help")
        if name in _SAFE_WRAPPERS:
            return self._wrapped(words)
        if name == "xargs":
            return self._xargs(words, upstream)
        if len(words) > 2 and known.helps(words):
            self._check_unless(name)
            if name == "git":
                check_repository(self.ground)
            return Proof(Stage(words), "read.help", "prints its help")
        if re.fullmatch(r"python3?", name) and words[1:2] == ("-m",):
            return self._python_module(words)
        if len(options := _compose_options(words)) > 0:
            return self._compose(words, options)
        program, written, moved = self._find(words)
        arguments = written
        if program.name == "find":
            arguments = exec_of_plain_files(arguments)
        reading = self._read(program, arguments)
        place = self if moved is None else Prover(self.files, moved, self.extra)
        place._check_paths(reading, program)
        place._check_values(reading, program)
        if program.name == "find":
            place._check_exec(reading)
        if name in ("git", "go"):
            check_repository(place.ground)
        own = program.instead or words[: len(words) - len(written)]
        if program.name == "git config":  # what the person has set, not what a plan sets over it
            own = ("env", "-u", "GIT_CONFIG_COUNT", *own)
        plan = (
            *own,
            *program.adds,
            *_unlinked(program, arguments, reading),
            *_instead_of_terminal(program, reading, upstream),
        )
        return Proof(Stage(plan), f"read.{program.name.replace(' ', '.')}", program.why)

    def _python_module(self, words: tuple[str, ...]) -> Proof:
        """python -m pip list: by itself (-I), so that no module of the project takes its place."""
        interpreter = (words[0], "-I", "-m")
        if words[2:3] == ("pip",) and len(words) > 3:
            inner = self._prove_words(("pip", *words[3:]))
            return Proof(Stage((*interpreter, *inner.stage.words)), inner.rule, inner.why)
        if words[2:3] == ("json.tool",):
            program = programs()["python -m json.tool"]
            self._check_paths(self._read(program, list(words[3:])), program)
            return Proof(Stage((*interpreter, *words[2:])), "read.json.tool", program.why)
        raise Unproven(f"`{' '.join(words[:3])}` is not known to only read")

    def _compose(self, words: tuple[str, ...], options: tuple[str, ...]) -> Proof:
        """docker compose -f FILE ps: the same as without, and the file is looked at."""
        head = words[: 2 if words[0] == "docker" else 1]
        for option, value in itertools.pairwise(options):
            if option in ("-f", "--file"):
                if ":" in value or value == "-":
                    raise Unproven(f"`{value}` may be an address")
                self._check_path(value, content=True)
        inner = self._prove_words((*head, *words[len(head) + len(options) :]))
        return replace(inner, stage=Stage((*head, *options, *inner.stage.words[len(head) :])))

    def _check_unless(self, name: str) -> None:
        for each in versions().unless:
            program, _, file = each.partition(":")
            if program == name and _exists_above(file, self.ground):
                raise Unproven(f"the project's {file} may name a program to run")

    def _read(self, program: Program, arguments: list[str]) -> Reading:
        if program.name in ("[", "test") and program.name == "[" and arguments[-1:] != ["]"]:
            raise Unproven("a test lacks its ]")
        if replacement := REPLACEMENTS.get(program.check):
            return replacement(arguments)
        reading = match(program, arguments)
        if further := FURTHER.get(program.check):
            further(reading)
        return reading

    def _find(self, words: tuple[str, ...]) -> tuple[Program, list[str], Ground | None]:
        """The entry for these words, the arguments after its name, and the directory it is sent to (`git -C`)."""
        table = programs()
        rest = list(words[1:])
        name = words[0]
        ground: Ground | None = None
        entry = self.extra(name) or table.get(name)
        while entry is not None and entry.prefix:
            rest, moved = self._past_options(entry, rest)
            ground = moved or ground
            for size in (2, 1):
                longer = " ".join((entry.name, *rest[:size]))
                if len(rest) >= size and (found := self.extra(longer) or table.get(longer)):
                    return self._deeper(found, rest[size:], ground)
            raise Unproven(f"`{' '.join((name, *rest[:1]))}` is not known to only read")
        for size in (3, 2):
            longer = " ".join(words[:size])
            if len(words) >= size and (found := self.extra(longer) or table.get(longer)):
                return self._deeper(found, list(words[size:]), ground)
        if entry is None:
            raise Unproven(f"`{name}` is not known to only read")
        return entry, rest, ground

    def _deeper(
        self, entry: Program, rest: list[str], ground: Ground | None
    ) -> tuple[Program, list[str], Ground | None]:
        if not entry.prefix:
            return entry, rest, ground
        if rest and (found := programs().get(f"{entry.name} {rest[0]}")):
            return found, rest[1:], ground
        raise Unproven(f"`{' '.join((entry.name, *rest[:1]))}` is not known to only read")

    def _past_options(self, entry: Program, rest: list[str]) -> tuple[list[str], Ground | None]:
        """Past the options between a program and its subcommand."""
        ground: Ground | None = None
        while rest and rest[0].startswith("-"):
            name, _, value = rest[0].lstrip("-").partition("=")
            kind = entry.long.get(name) if rest[0].startswith("--") else entry.short.get(rest[0][1:2])
            if kind is None or (not rest[0].startswith("--") and len(rest[0]) > 2):
                raise Unproven(f"`{entry.name}` is not known to only read with {rest[0]}")
            taken = 1
            if kind in (":", "@") and not value:
                if len(rest) < 2:
                    raise Unproven(f"{rest[0]} lacks its value")
                value, taken = rest[1], 2
            if kind == "@":  # git -C: the rest is meant from there
                ground = (ground or self.ground).moved(value)
                if not ground.inside:
                    raise Unproven("it looks outside of the workspace")
            rest = rest[taken:]
        return rest, ground

    def _check_paths(self, reading: Reading, program: Program) -> None:
        for name in program.unless:
            if _exists_above(name, self.ground):
                raise Unproven(f"the project's {name} may name a program to run")
        for path, content in reading.paths:
            if program.check in ("recursive", "ls") and self.ground.look(self.files, path).inside:
                content = False  # names and sizes of all below it, no more
            self._check_path(path, content=content)
            if (content or program.name == "wc") and not (program.name == "head" and _takes_little(reading)):
                self._check_end(path)

    def _check_end(self, path: str) -> None:
        if str(self._named(path).path) in _ENDLESS:
            raise Unproven(f"{path} has no end")

    def _check_path(self, path: str, *, content: bool) -> None:
        look = self.ground.look(self.files, path)
        if content:
            why = look.unread or ("it is named like credentials" if is_secret(path) else "")
        elif look.inside or look.public:
            why = look.trouble or look.own or look.ignored
        else:
            why = "" if listable(self.ground.locate(path)) else "it is outside of the workspace"
        if why:
            raise Unproven(f"{path}: {why}")

    def _named(self, name: str) -> Look:
        """What a name would be here, that may be a pattern: the disk is not asked for it."""
        for folder in (self.ground.cwd, self.ground.workspace):
            note(f"{folder}/.tarmacignore")
        return self.files.look(name, cwd=Path(self.ground.cwd), workspace=Path(self.ground.workspace))

    def _check_values(self, reading: Reading, program: Program) -> None:
        """The value of an option that names a file elsewhere is more than text, whatever the table says."""
        for pattern, certain in reading.patterns:
            check_pattern(pattern, self._named, certain=certain)
        for name, value in reading.options:
            if name in ("include", "g", "glob", "iglob") and value and not value.startswith("!"):
                check_pattern(value, self._named)
            if name == "L" and value and program.name == "git log":
                check_pattern(value.rpartition(":")[2], self._named)
            if not value or name.startswith("exec") or len(value) < 2 or program.name.split()[0] in _TEXT_VALUES:
                continue
            if re.search(r"(^|[=@:,])(/|~|\.\./)", value) or self.ground.locate(value).kind in ("secret", "own"):
                raise Unproven(f"`{value}` may name a file")

    def _check_exec(self, reading: Reading) -> None:
        """find -exec: the command inside reads too, and gets names below the workspace only."""
        starts = [path for path, _ in reading.paths] or ["."]
        for name, value in reading.options:
            if name not in ("exec", "exec+") or value is None:
                continue
            inner = value.split("\0")
            if "{}" in inner[0] or any("{}" in word and word != "{}" for word in inner):
                raise Unproven("find -exec puts names inside other words")
            check_found(reading, inner[0], self._named)
            if starts[0].startswith("-"):
                raise Unproven("a name could be an option")
            found = [os.path.join(starts[0], each) for each in ("xy" if name == "exec+" else "x")]  # + gives several
            sample = [each for word in inner for each in (found if word == "{}" else [word])]
            if inner[0] in ("xargs", "find", "git") or inner[0] in _SAFE_WRAPPERS:
                raise Unproven("find -exec of another launcher")
            self._prove_words(tuple(sample))

    def _wrapped(self, words: tuple[str, ...]) -> Proof:
        """timeout 5 ls, nice ls: no more than what they start."""
        rest = list(words[1:])
        if words[0] == "command" and rest[:1] in (["-v"], ["-V"]):
            if len(rest) >= 2 and all(re.fullmatch(r"[\w.+-]+", word) for word in rest[1:]):
                return Proof(
                    Stage(("bash", "-p", "-c", 'command "$@"', "bash", *rest)),
                    "read.command",
                    "says where a program is",
                )
            raise Unproven("it asks for more than a command")
        options = {
            "timeout": r"-[ks]?[0-9.]*[smhd]?|--preserve-status|--foreground",
            "nice": r"-n?-?[0-9]*",
            "stdbuf": r"-[ioe][0L]",
        }
        pattern = options.get(words[0])
        while rest and rest[0].startswith("-"):
            if pattern is None or not re.fullmatch(pattern, rest[0]):
                raise Unproven(f"`{words[0]}` with {rest[0]} is not known")
            if rest[0] in ("-n", "-k", "-s") and len(rest) > 1:
                rest.pop(0)
            rest.pop(0)
        if words[0] == "timeout":
            if not rest or not re.fullmatch(r"[0-9.]+[smhd]?", rest[0]):
                raise Unproven("timeout lacks its time")
            rest.pop(0)
        if not rest or rest[0] in _SAFE_WRAPPERS or rest[0] == "xargs":
            raise Unproven(f"`{words[0]}` of another launcher")
        inner = self._prove_words(tuple(rest))
        kept = words if words[0] not in ("command", "nohup") else inner.stage.words
        return Proof(Stage(kept), inner.rule, inner.why)

    def _xargs(self, words: tuple[str, ...], upstream: tuple[Simple, ...]) -> Proof:
        """find … | xargs wc -l: a command that shows no more than sizes and counts, whatever names it gets."""
        rest = list(words[1:])
        exact, holder = False, ""
        while rest and rest[0].startswith("-"):
            word = rest.pop(0)
            if word in ("-0", "--null", "-r", "--no-run-if-empty", "-t", "-0r", "-r0"):
                exact |= "0" in word or word == "--null"
            elif re.fullmatch(r"-[nPL][0-9]+", word):
                pass
            elif word in ("-n", "-P", "-L") and rest and rest[0].isdigit():
                rest.pop(0)
            elif word in ("-I{}", "-I%") or (word == "-I" and rest[:1] in (["{}"], ["%"])):
                holder = word[2:] or rest.pop(0)
            else:
                raise Unproven(f"`xargs` with {word} is not known")
        if not rest or not upstream:
            raise Unproven("xargs runs a command with words from elsewhere")
        own, given = words[: len(words) - len(rest)], [f"{os.curdir}/x"]
        if holder:
            if any(holder in word for word in rest[:-1]) or rest[-1] != holder:
                raise Unproven("xargs puts names inside other words")
            rest.pop()
        before = self._check_handed(rest[0], upstream, exact=exact)
        inner = self._prove_words((*rest, *given))
        end = () if rest[0] == "echo" or "--" in rest else ("--",)  # so that no name is an option
        if before:
            own = (own[0], "-0", *own[1:])
        return Proof(Stage((*own, *rest, *end, *[holder] * bool(holder))), inner.rule, inner.why, before)

    def _check_handed(self, opener: str, upstream: tuple[Simple, ...], *, exact: bool) -> tuple[tuple[str, ...], ...]:
        """Whether names from this pipe may be given to `opener`; and what must print them, if not what is written."""
        lines = [simple.literal_words() or (simple.name or "",) for simple in upstream]
        before: tuple[tuple[str, ...], ...] = ()
        if opener in READERS:
            if None in (simple.literal_words() for simple in upstream):
                raise Unproven(f"xargs gives `{opener}` names that are not known")
            if lines[0][0] != "find" or exact is not ("-print0" in lines[0]) or (exact and len(lines) != 1):
                raise Unproven(f"xargs gives `{opener}` names that are not known")
            before = () if exact else (plain_files(lines[0]), *map(of_whole_names, lines[1:]))
            check_found(REPLACEMENTS["find"]((before or lines)[0][1:]), opener, self._named)
        elif opener not in METADATA or not _prints_names(lines[0]):
            raise Unproven(f"xargs gives `{opener}` names that are not known")
        for words in lines[1:]:
            if words[0] not in FILTERS or self._read(*self._find(words)[:2]).paths:
                raise Unproven(f"xargs gives `{opener}` names that are not known")
        return before


def _prints_names(words: tuple[str, ...]) -> bool:
    """Whether this command prints names of files, and not what is in them."""
    if words[0] in ("grep", "rg"):
        listing = {"-l", "-rl", "-lr", "-ril", "-rli", "--files", "--files-with-matches", "-L"}
        return bool(listing & set(words))
    return words[0] in ("find", "fd", "fdfind", "ls") or (
        words[0] == "git" and bool({"ls-files", "--name-only", "-l"} & set(words))
    )


def _compose_options(words: tuple[str, ...]) -> tuple[str, ...]:
    """The options between `docker compose` and its command: its file, project and profile, each with a value."""
    if words[:2] != ("docker", "compose") and words[0] != "docker-compose":
        return ()
    start = at = 2 if words[0] == "docker" else 1
    while words[at : at + 1] and words[at] in ("-f", "--file", "-p", "--project-name", "--profile"):
        at += 2
    return words[start:at] if at < len(words) else ()


def _takes_little(reading: Reading) -> bool:
    """Whether `head` ends soon, whatever it reads."""
    counts = [
        value or name for name, value in reading.options if name in ("c", "n", "bytes", "lines") or name.isdigit()
    ]
    return all(re.fullmatch(r"[0-9]{1,6}", count) for count in counts)


def _unlinked(program: Program, arguments: list[str], reading: Reading) -> list[str]:
    """The arguments, so that searching all below a folder does not follow links out of the workspace."""
    names = {name for name, _ in reading.options}
    if program.name in ("diff", "colordiff") and {"r", "recursive"} & names:
        return ["--no-dereference", *arguments]
    if program.name not in ("grep", "egrep", "fgrep") or not {"R", "dereference-recursive"} & names:
        return arguments
    made: list[str] = []
    value = False  # of the option before
    for number, word in enumerate(arguments):
        if word == "--" and not value:
            return made + arguments[number:]
        if value or not word.startswith("-"):
            made.append(word)
            value = False
        elif word.startswith("--"):
            made.append("--recursive" if word.startswith("--der") else word)
            value = "=" not in word and program.long.get(word[2:]) in (":", "@")
        else:
            end = next((i for i, letter in enumerate(word) if program.short.get(letter)), len(word))
            made.append(word[:end].replace("R", "r") + word[end:])
            value = end == len(word) - 1
    return made


def _instead_of_terminal(program: Program, reading: Reading, upstream: tuple[Simple, ...]) -> tuple[str, ...]:
    """What a program does in a terminal and not in a plan: without one, git shortlog waits for a log."""
    whole = {"all", "branches", "tags", "remotes"} & {name for name, _ in reading.options}
    return ("HEAD",) if program.name == "git shortlog" and not (upstream or reading.operands or whole) else ()


def _streams(redirects: Sequence[Redirect]) -> Stage:
    """Where the streams lead, by redirections that write nothing: to /dev/null, or between 1 and 2."""
    stdin: str | None = None
    text: str | None = None
    out, err = "out", "err"
    for each in redirects:
        target = each.target.text if each.target and each.target.literal else None
        match (each.fd, each.op, target):
            case ("" | "1", ">" | ">>" | ">|", "/dev/null"):
                out = "null"
            case ("2", ">" | ">>", "/dev/null"):
                err = "null"
            case ("", "&>" | "&>>", "/dev/null"):
                out = err = "null"
            case ("2", ">&", "1"):
                err = out
            case ("" | "1", ">&", "2"):
                out = "err" if err == "err" else err
            case ("" | "0", "<", str(path)):
                stdin, text = path, None
            case ("" | "0", "<<<", _) if each.target and each.target.text is not None and not each.target.home:
                stdin, text = None, f"{each.target.text}\n"
            case ("" | "0", "<<", _) if each.body is not None:
                stdin, text = None, each.body
            case (_, "<<" | "<<-" | "<<<", _):
                raise Unproven("it holds a here-document")
            case _:
                raise Unproven(f"it redirects: {each.source}")
    return Stage((), stdin=stdin, text=text, stdout=out, stderr=err)  # type: ignore[arg-type]


def _asks_for_secret(words: Sequence[str]) -> bool:
    return any(re.search(r"key|token|secret|passw|credential|auth|aws|api", word, re.IGNORECASE) for word in words[1:])


def _may_be_secret(pattern: str) -> bool:
    """Whether a pattern that says something, more than `*`, could mean a file of secrets."""
    name = pattern.rpartition("/")[2]
    samples = (
        ".env",
        ".env.local",
        ".netrc",
        ".npmrc",
        ".pypirc",
        ".git-credentials",
        "id_rsa",
        "server.pem",
        "server.key",
    )
    return len(re.sub(r"[*?\[\]]", "", name)) >= 2 and any(fnmatch.fnmatchcase(each, name) for each in samples)


def looks_alike(word: str) -> bool:
    """Whether a word could be taken for another: Latin letters mixed with lookalikes, or nothing but lookalikes."""
    if word.isascii() or _LOOKALIKES.isdisjoint(word):
        return False
    letters = [character for character in word if character.isalpha()]
    return any(character.isascii() for character in letters) or _LOOKALIKES.issuperset(letters)


@lru_cache(maxsize=256)
def _any_option_reads(name: str | None) -> bool:
    entry = programs().get(name or "")
    return entry is not None and entry.harmless_options


def _matching(pattern: str, cwd: str) -> list[str]:
    """What the shell would put for a pattern of * and ?; hidden names only when asked for."""
    note(cwd)
    parts = pattern.split("/")
    if len(parts) > MOST_FOLDERS:
        raise Unproven(f"a pattern of more than {MOST_FOLDERS} folders is not read here")
    for depth in range(1, len(parts)):  # a change in any folder it looks into may give other names
        note(os.path.join(cwd, *parts[:depth]))
    return expand(pattern, cwd) if len(pattern) < 4096 else []


def _exists_above(name: str, ground: Ground) -> bool:
    place = Path(ground.cwd)
    for folder in (place, *place.parents):
        note(str(folder / name))
        if (folder / name).exists():
            return True
        if str(folder) == ground.workspace:
            return False
    return False
