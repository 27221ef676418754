"""Programs whose effects depend on what they are pointed at: rm, dd, find, cp, chmod, curl, sed … The floor is here.

First the files that a command reads or writes, and how much that weighs by where they are and how they are named. Then
one function for each sort of program: `special` in the tables. Each function adds to an Assessment what one command
would do. `enter` judges a command inside (find -exec).
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

from tarmac.errors import PlaceFailed
from tarmac.policy.budget import Spent, elsewhere, note, spend
from tarmac.policy.files import Files
from tarmac.policy.parse.words import UNKNOWN, Simple, Word, word_of
from tarmac.policy.places import Ground, Place, expand
from tarmac.policy.programs.effects import Arguments, Assessment, arguments, program_name, shown
from tarmac.policy.programs.program import Trait, grammars, known
from tarmac.policy.programs.repository import tracks
from tarmac.policy.verdict import EffectKind, Risk, Rule, worst

_WRITE_RISK: dict[str, Risk] = {"workspace": "medium", "temporary": "medium", "harmless": "low"}
_STAYS = re.compile(r"\.ssh/|cron|sudoers|/etc/(passwd|shadow|profile|ld\.so)|autostart|systemd|LaunchAgents")


@dataclass(frozen=True, slots=True)
class At:
    """Where a command stands, and how to look at files there."""

    ground: Ground
    files: Files
    fetched: frozenset[str] = frozenset()  # files that the line downloaded before

    def protected(self, text: str) -> str:
        """Why a file is more than a file; empty when it isn't."""
        if UNKNOWN in text or text.startswith("~"):
            tail = text.rsplit("/", 1)[-1]
            text = tail if UNKNOWN not in tail else ""
        if not text:
            return ""
        look = self.ground.look(self.files, text)
        return look.protected or look.own

    def credential(self, text: str) -> str:
        """Why a file is taken for credentials."""
        return self.ground.look(self.files, text).credential

    def hidden(self, text: str) -> str:
        """Why a file is hidden from agents."""
        return self.ground.look(self.files, text).ignored

    def outside(self, operand: str) -> bool:
        """Whether an operand names something outside of the workspace."""
        if operand.startswith("-") or UNKNOWN in operand:
            return False
        if self.ground.inside and not ("/" in operand or operand.startswith("~") or operand == ".."):
            return False
        place = self.ground.locate(operand)
        return not place.inside and place.kind != "harmless"


def look_at_argument(found: Assessment, name: str, word: Word, at: At, *, written: bool = False) -> None:
    """Whatever the program is: a name that looks like credentials is worth a question."""
    text = word.shape.partition("=")[2] if word.shape.startswith("-") and "=" in word.shape else word.shape
    text = text.removeprefix("@")
    of = known(name).traits
    if Trait.REVISIONS in of and re.search(r"(^|[:/])(\.env|id_rsa)", text.partition(":")[2]):
        found.add("high", Rule.SECRET, f"reads {shown([text])}, which looks like credentials")
    if not text or text.startswith("-") or " " in text or len(text) > 400 or Trait.NO_FILES in of:
        return
    if Trait.FILTER in of and text.startswith(".") and "/" not in text:
        return  # a filter, no file
    if re.search(r"/dev/(tcp|udp)/", text):
        found.add("critical", Rule.SOCKET, "speaks with another machine through the shell")
    elif written:
        return
    elif word.glob and word.text:
        note(at.ground.cwd)
        try:
            names = expand(word.text, at.ground.cwd, hidden=word.text.startswith("."))[:500]
        except Spent as error:
            names = []
            found.add("medium", Rule.READ, error.does, known=False)
        for each in (*names, text):
            look_at_secret(found, name, each, at)
    elif Trait.TEXTUAL not in of or "/" in text or text.startswith((".env", "~")):
        look_at_secret(found, name, text, at)


def look_at_secret(found: Assessment, name: str, text: str, at: At) -> None:
    """Add what reading `text` means when it is named like credentials, hidden, or Tarmac's own."""
    place = at.ground.locate(text)
    program = known(name)
    does, names_only = program.touches or "reads", Trait.NAMES_ONLY in program.traits
    if place.kind == "own":
        found.add("high", Rule.OWN, f"touches {shown([text])}, which belongs to Tarmac")
    elif place.kind == "secret":
        risk: Risk = "medium" if names_only else "high"
        found.add(risk, Rule.SECRET, f"{does} {shown([text])}, which looks like credentials")
    elif place.kind == "disk" and not names_only:
        raw = Trait.SHOWS_CONTENT in program.traits
        does = "reads the raw disk" if raw else "works on the disk"
        found.add("high", Rule.DISK, f"{does} {shown([text])}", vague=not raw)
    elif UNKNOWN not in text and (why := at.credential(text)):
        risk = "medium" if names_only else "high"
        found.add(risk, Rule.SECRET, f"{does} {shown([text])}: {why}")
    elif UNKNOWN not in text and at.hidden(text):
        found.add("medium", Rule.IGNORED, f"{does} {shown([text])}, which is hidden from agents")


def read_file(found: Assessment, text: str, at: At) -> None:
    """Add what reading a file by redirection means."""
    look_at_secret(found, "cat", text, at)
    if at.outside(text):
        found.add("medium", Rule.READ, f"reads {shown([text])}, outside of the workspace")


def write_file(found: Assessment, text: str, at: At, *, verb: str) -> None:
    """A file is made or changed."""
    place = at.ground.locate(text)
    if place.kind == "disk":
        found.add("critical", Rule.FLOOR_DISK, f"{verb} the disk {shown([text])}", deny=True)
        return
    if re.match(rf"/dev/[^/]*{UNKNOWN}", text):
        found.add("critical", Rule.DISK, f"{verb} {shown([text])}, which may be a disk")
        return
    risk: Risk = _WRITE_RISK.get(place.changed, "high")
    why = at.protected(text)
    if why and place.kind != "workspace":
        risk = "high"
    if why and re.search(r"(^|/)\.git(/|$)|(^|/)\.husky(/|$)", place.shown):
        risk = "high"
    if place.kind == "secret" and at.ground.locate(text.rsplit("/", 1)[0] if "/" in text else ".").inside:
        risk = "medium"  # a file of the workspace that will hold secrets
    if place.kind == "home" or _STAYS.search(text):
        risk = worst(risk, "high")
    if why:
        found.add(risk, Rule.PROTECTED, f"{verb} {shown([place.shown])}; {why}", kind=EffectKind.CONFIGURES)
    else:
        found.add(risk, Rule.WRITE, verb, files=(place.shown,), where=where(place))


def protect(found: Assessment, text: str, at: At) -> None:
    """A file may be changed. If it is protected, a person is asked, whatever was allowed."""
    if why := at.protected(text):
        found.add("medium", Rule.PROTECTED, f"may change {shown([text])}; {why}", kind=EffectKind.MAY)


def where(place: Place) -> str:
    """Where a file is, for a person: ", in the workspace"."""
    if UNKNOWN in place.shown:
        return ", in a place known only when it runs"
    match place.changed:
        case "workspace":
            return ", in the workspace"
        case "system":
            return ", part of the system"
        case "home":
            return ", in a home folder"
        case "secret":
            return ", which looks like credentials"
        case "root":
            return ", the root of the file system"
        case "temporary":
            return ", in a temporary place"
        case "own":
            return ", which belongs to Tarmac"
        case _:
            return ", outside of the workspace"


Special = Callable[[Assessment, Arguments, At, Sequence[Word], Simple], None]
MOST_LANDING = 100  # names of a copy that are looked at, one by one
_STREAMS = ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty")
_SIZE = re.compile(r"[+-]?\d+\w?")


def write_operands(found: Assessment, args: Arguments, at: At, words: Sequence[Word], simple: Simple) -> None:
    """cp, mv, ln, install, tee, touch, mkdir, truncate …: the last operand is written, or all of them."""
    operands = [each for each in args.operands if each != "--"]
    program = known(args.name)
    if Trait.SIZE_OPERAND in program.traits:
        operands = [each for each in operands if not _SIZE.fullmatch(each)]
    into, sources = _destination(args, operands)
    if Trait.MOVES_AWAY in program.traits:
        _move_away(found, operands, at)
    targets = operands if Trait.WRITES_ALL in program.traits else [into] if into is not None else operands[-1:]
    for target in targets:
        if target not in _STREAMS:
            write_file(found, target, at, verb=program.verb or "writes")
    if Trait.SECOND_NAME in program.traits and not found.protected:  # gone, or written by another name
        for each in sources:
            protect(found, each, at)
    if Trait.COPIES in program.traits and not found.protected:
        for each in _landing(into, sources, at):
            protect(found, each, at)
    if Trait.LINKS in program.traits and operands:
        found.add("medium", Rule.LINK, f"makes a link to {shown(operands[:1])}")


def _move_away(found: Assessment, operands: Sequence[str], at: At) -> None:
    kinds = {each: at.ground.locate(each).changed for each in operands}
    far = [
        each for each, kind in kinds.items() if kind in ("system", "home", "root", "secret") and each not in _STREAMS
    ]
    if any(kinds[each] == "root" for each in far):
        found.add("critical", Rule.MOVE, f"moves {shown(far)} away: the root of the file system")
    elif far:
        found.add("high", Rule.MOVE, f"moves {shown(far)} away")
    if operands[-1:] == ["/dev/null"]:
        found.add("high", Rule.REMOVE, f"throws {shown(operands[:-1])} away")


def _destination(args: Arguments, operands: list[str]) -> tuple[str | None, list[str]]:
    """Where a copy goes, and what is copied: `-t DIR`, or the last operand."""
    for word, after in pairwise((*args.words, "")):
        if word.startswith("--target-directory="):
            into = word.partition("=")[2]
            return into, [each for each in operands if each != into]
        if word == "--target-directory" or re.fullmatch(r"-[A-Za-z]*t", word):
            return after, [each for each in operands if each != after]
        if re.match(r"-t.", word):
            return word[2:], operands
    return (operands[-1], operands[:-1]) if len(operands) > 1 else (None, operands)


def _landing(into: str | None, sources: Sequence[str], at: At, *, contents: bool = False) -> Iterator[str]:
    """The names that copies get in the folder `into`; with `contents` (rsync) those in `a/`, too."""
    if into is None or UNKNOWN in into:
        return
    for source in sources[:MOST_LANDING]:
        name = source.rstrip("/").rpartition("/")[2]
        if name in ("", ".", "..") or (contents and source.endswith("/")):
            yield from (os.path.join(into, each) for each in _names_in(source, at))
        else:
            yield os.path.join(into, name)


def _names_in(folder: str, at: At) -> list[str]:
    spend()
    try:
        if (system := elsewhere()) is not None:
            found = system.entries(os.path.normpath(os.path.join(at.ground.cwd, folder)))
            return [name for name, _ in found[:MOST_LANDING]]
        return os.listdir(os.path.join(at.ground.cwd, folder))[:MOST_LANDING]
    except PlaceFailed:
        raise
    except (OSError, ValueError):
        return []


def copy_bytes(found: Assessment, args: Arguments, at: At, words: Sequence[Word], simple: Simple) -> None:
    """dd."""
    outputs = [each[3:] for each in args.operands if each.startswith("of=")]
    for each in outputs:
        if each.startswith(UNKNOWN):
            found.add("critical", Rule.DISK, "overwrites a file or disk that is known only when it runs")
        elif each not in _STREAMS:
            write_file(found, each, at, verb="overwrites")
    for each in args.operands:
        if each.startswith("if=") and at.ground.locate(each[3:]).kind == "disk":
            found.add("high", Rule.DISK, f"reads the raw disk {shown([each[3:]])}")
    if not any(each not in _STREAMS for each in outputs):
        found.add("medium", Rule.DD, "copies bytes")


def unpack(found: Assessment, args: Arguments, at: At, words: Sequence[Word], simple: Simple) -> None:
    """tar and unzip: where they unpack to. What is in an archive is not known."""
    first = args.words[0] if args.words else ""
    letter, name = (*known(args.name).unpacks_into, "")[:2]
    if name and not (args.has("-x", "--extract", "--get") or (not first.startswith("-") and "x" in first)):
        return
    for word, after in pairwise((*args.words, "")):
        target = ""
        if re.fullmatch(rf"-[A-Za-z]*{letter[1:]}", word) or word == name:
            target = after
        elif name and word.startswith(name + "="):
            target = word.partition("=")[2]
        elif re.match(rf"{letter}.", word):
            target = word[2:]
        if target:
            write_file(found, target, at, verb="unpacks into")


def mirror(found: Assessment, args: Arguments, at: At, words: Sequence[Word], simple: Simple) -> None:
    """rsync: into a folder of this machine."""
    operands = [each for each in args.operands if each != "--" and each not in _values(args)]
    if len(operands) < 2 or re.match(r"[^/]*:", operands[-1]):
        return
    into, deletes = operands[-1], any(word.startswith("--del") for word in args.words)
    if deletes and at.ground.locate(into).kind == "root":
        found.add("critical", Rule.REMOVE, "deletes everything on this machine that is not in its source")
    write_file(found, into, at, verb="copies into")
    for each in _landing(into, operands[:-1], at, contents=True):
        protect(found, each, at)


def _values(args: Arguments) -> set[str]:
    return {word.partition("=")[2] for word in args.options if "=" in word}


# Any other program

_OUTPUT = re.compile(r"-o|--out(put)?(-?(dir|file|path))?|--target-dir|--(c|m|b)?cpuprofile|-coverprofile|--save")


@cache
def _readers() -> frozenset[str]:
    """Programs that the tables know to read, at least by one of their commands."""
    keys = (name.partition(" ") for name in grammars())
    return frozenset(name for name, _, command in keys if not command.startswith("-"))


def look_for_protected(found: Assessment, args: Arguments, words: Sequence[Word], at: At) -> None:
    """A protected file among the words of a command that may change it."""
    program = known(args.name)
    if found.protected or not program.traits.isdisjoint((Trait.PLACES_JUDGED, Trait.COPIES, Trait.WRITES_ALL)):
        return
    given = list(words[1:])
    if program.changes:
        if len(args.subcommand) < 2 or args.subcommand[1] not in program.changes:
            return
    elif program.writes_by:
        if not args.has(*program.writes_by):
            return
    elif Trait.RUNS_FILE in program.traits:
        return
    elif args.name in _readers() and Trait.WRITES_BY_FORM not in program.traits:
        given = [after for word, after in pairwise(given) if _OUTPUT.fullmatch(word.shape)] + [
            word for word in given if _OUTPUT.fullmatch(word.shape.partition("=")[0]) and "=" in word.shape
        ]
    try:
        for word in given:
            for each in _meant(word, at):
                protect(found, each, at)
    except Spent as error:
        found.add("high", Rule.PROTECTED, error.does, known=False)


def _meant(word: Word, at: At) -> list[str]:
    text = word.shape
    if text.startswith("-"):
        text = text.partition("=")[2]
    if not text or len(text) > 400 or "://" in text or " " in text:
        return []
    return [*expand(text, at.ground.cwd, hidden=text.startswith("."))[:500], text] if word.glob else [text]


_RECURSE = re.compile(r"-r(e(c(u(r(se?)?)?)?)?)?(:\$true)?|/s|-rf|-fr|--recursive", re.IGNORECASE)
_FORCE = re.compile(r"-f(o(r(ce?)?)?)?(:\$true)?|/[qf]|-rf|-fr|--force", re.IGNORECASE)
_ROOT = re.compile(r"([A-Za-z]:)?[\\/]+[*.]*|[A-Za-z]:\*?")
_FETCHED = re.compile(r"DownloadString|DownloadFile|Net\.WebClient|OpenRead|Start-BitsTransfer", re.IGNORECASE)
_WHERE = re.compile(r"-(pa|l|fi?l|des)", re.IGNORECASE)  # -Path, -LiteralPath, -FilePath, -Destination


def remove_item(found: Assessment, args: Arguments, at: At, words: Sequence[Word], simple: Simple) -> None:
    """Remove-Item, rd /s /q."""
    given = [word.shape for word in words[1:]]
    recurse, force = any(map(_RECURSE.fullmatch, given)), any(map(_FORCE.fullmatch, given))
    targets = [each for each in given if not re.match(r"-|/[a-zA-Z]$", each)]
    if recurse and any(_ROOT.fullmatch(each) for each in targets):
        unix = any(each.startswith("/") for each in targets)
        rule = Rule.FLOOR_ROOT if unix else Rule.REMOVE
        found.add("critical", rule, "deletes everything on this machine", deny=unix)
        return
    lies = where(at.ground.locate(targets[0])) if targets else ""
    if recurse:
        does = f"deletes the folder {shown(targets)} and all below it{lies}"
        found.add("critical" if force else "high", Rule.REMOVE, does)
    elif simple.upstream or not targets:
        found.add("high", Rule.REMOVE, "deletes files whose names come from elsewhere")
    else:
        found.add("medium", Rule.REMOVE, f"deletes {shown(targets)}{lies}")
    for each in targets:
        protect(found, each, at)


def write_item(found: Assessment, args: Arguments, at: At, words: Sequence[Word], simple: Simple) -> None:
    """Set-Content, Out-File, New-Item, Copy-Item …"""
    given = [word.shape for word in words[1:]]
    named = [value for option, value in pairwise(given) if _WHERE.match(option)]
    plain = [value for option, value in pairwise(("", *given)) if not value.startswith("-") and option[:1] != "-"]
    last = Trait.TO_LAST in known(args.name).traits
    for target in named[-1:] or (plain[-1:] if last else plain[:1]):
        write_file(found, target, at, verb="writes")


def invoke_expression(found: Assessment, args: Arguments, at: At, words: Sequence[Word], simple: Simple) -> None:
    """Invoke-Expression: text as a command, in the worst case text from elsewhere."""
    others = (word.shape for each in (*simple.upstream, *simple.holds) for word in each.words[:1])
    if any(Trait.CMDLET_FETCHES in known(each).traits for each in others) or any(
        _FETCHED.search(each.text) for each in (simple, *simple.upstream)
    ):
        found.add("critical", Rule.REMOTE, "runs code that it fetches from another machine")
    else:
        found.add("high", Rule.ASK_HIDDEN, "runs text that is known only when it runs", known=False)


_FAR = ("system", "home", "secret", "root", "own")
MOST_ALTERNATIVES = 64  # of a brace expansion
LONGEST_SCRIPT = 4_096  # characters of a program in an argument: nobody reads a longer one
_BY_NAME = frozenset("-name -iname -path -ipath -wholename -iwholename -regex -iregex".split())
_BY_KIND = frozenset(
    "-mtime -mmin -size -empty -newer -user -group -perm -atime -amin -ctime -cmin -maxdepth -uid".split()
)


def remove(found: Assessment, args: Arguments, at: At, words: Sequence[Word], simple: Simple) -> None:
    """rm."""
    recursive = args.has("-r", "-R", "--recursive")
    forced = args.has("-f", "--force")
    targets = [word for word in words[1:] if not word.shape.startswith("-") or word.shape == "-"]
    if recursive and any(is_root(word, at) for word in targets):
        found.add("critical", Rule.FLOOR_ROOT, "deletes everything on this machine", deny=True)
        return
    if not targets and not simple.upstream:
        if args.has("--help", "--version"):
            found.add("low", Rule.HELP, "prints help")
        else:
            found.add("critical" if recursive and forced else "medium", Rule.REMOVE, "deletes what it is given")
        return
    places = [at.ground.locate(word.shape) for word in targets]
    one = len(places) == 1 and not targets[0].glob
    names = shown([place.shown for place in places])
    lies = where(places[0]) if places else ""
    far = any(place.changed in _FAR for place in places)
    if recursive:
        does = f"deletes the folder{'' if one else 's'} {names} and all below {'it' if one else 'them'}"
        lost = far or (forced and not all(_untracked(word, at) for word in targets))
        found.add("critical" if lost else "high", Rule.REMOVE, does, where=lies)
    elif not targets and simple.upstream:
        found.add("high", Rule.REMOVE, "deletes files whose names come from elsewhere")
    else:
        risky = (
            far
            or any(place.kind == "outside" for place in places)
            or any(at.protected(word.shape) for word in targets if word.literal)
        )
        risky |= any((word.glob and word.shape.strip("./") in ("*", ".*")) or word.shape == UNKNOWN for word in targets)
        does = f"deletes the file{'' if one else 's'} {names}"
        found.add("high" if risky else "medium", Rule.REMOVE, does, where=lies)
    for word in targets:
        if not word.glob:
            protect(found, word.shape, at)


def _untracked(word: Word, at: At) -> bool:
    """Whether a folder lies in the workspace and git tracks nothing of it: a build, a cache. It can be made again."""
    if not word.literal or word.text is None or UNKNOWN in word.text or "{}" in word.text or elsewhere():
        return False
    place = at.ground.locate(word.text)
    path = Path(place.path)
    note(str(path))
    inside = place.kind == "workspace" and place.path != at.ground.workspace and ".git" not in path.parts
    return inside and not (path / ".git").exists() and tracks(path) is False


def is_root(word: Word, at: At) -> bool:
    """Whether a word is `/`, or all that lies in it."""
    if word.text is None and not word.glob:
        return False
    alternatives = [word.shape]
    if word.brace:
        found = re.findall(r"[{,]([^{},]*)(?=[,}])", word.shape)
        shortest = sorted(set(found), key=len)[:MOST_ALTERNATIVES]  # what leads to the root is short
        alternatives += [each.join(re.split(r"\{[^{}]*\}", word.shape)) for each in shortest]
    return any(at.ground.locate(each).kind == "root" for each in alternatives if not each.startswith("~"))


def make_file_system(found: Assessment, args: Arguments, at: At, words: Sequence[Word], simple: Simple) -> None:
    """mkfs and mkfs.*."""
    if args.words and all(each in ("--help", "-V", "--version", "-h") for each in args.words):
        found.add("low", Rule.HELP, "prints help")
    else:
        what = shown(args.operands[-1:])
        found.add("critical", Rule.FLOOR_MKFS, f"makes a new file system on {what}; all on it is lost", deny=True)


def search(enter: Callable[[Assessment, Simple, tuple[Word, ...], At], None]) -> Special:
    """find; `enter` judges what it runs."""

    def find(found: Assessment, args: Arguments, at: At, words: Sequence[Word], simple: Simple) -> None:
        shapes = [word.shape for word in words[1:]]
        starts = _starts(shapes)
        named = any(test in _BY_NAME and value.strip("*/.") for test, value in pairwise(shapes))
        kinds = {at.ground.locate(start).kind for start in starts}
        tested = named or not _BY_KIND.isdisjoint(shapes)  # `-type f` leaves nothing out that anybody would miss
        risk: Risk
        if "-delete" in shapes:
            if "root" in kinds and not tested:
                found.add("critical", Rule.FLOOR_ROOT, "deletes everything on this machine", deny=True)
            else:
                risk = "critical" if kinds & {"system", "home", "root"} and not named else "high"
                found.add(risk, Rule.REMOVE, f"deletes all it finds below {shown(starts)}")
        for index, shape in enumerate(shapes):
            if shape in ("-fprint", "-fprint0", "-fls", "-fprintf") and index + 1 < len(shapes):
                write_file(found, shapes[index + 1], at, verb="overwrites")
            if shape in ("-exec", "-execdir", "-ok", "-okdir"):
                rest = list(words[index + 2 :])
                end = next((i for i, word in enumerate(rest) if word.shape in (";", "+", "\\;")), len(rest))
                some = tested or ("-type" in shapes and "root" not in kinds)
                each = f"{starts[0].rstrip('/')}/{UNKNOWN}" if some else starts[0]
                inner = tuple(word_of(each) if w.shape == "{}" else w for w in rest[:end])
                if inner:
                    enter(found, simple, inner, at)
                    if _removes(inner[0]):
                        risk = "critical" if "root" in kinds and not named else "high"
                        found.add(risk, Rule.REMOVE, f"deletes what it finds below {shown(starts)}")
        if all(effect.risk == "low" for effect in found.effects) and any(at.outside(start) for start in starts):
            found.add("medium", Rule.READ, f"looks for files in {shown(starts)}, outside of the workspace")

    return find


def _removes(word: Word) -> bool:
    return known(program_name(word)).special == remove.__name__


def _starts(shapes: Sequence[str]) -> list[str]:
    starts: list[str] = []
    for shape in shapes:
        if (shape.startswith("-") and shape not in ("-H", "-L", "-P")) or shape in ("(", "!"):
            break
        if not shape.startswith("-"):
            starts.append(shape)
    return starts or ["."]


def change_rights(found: Assessment, args: Arguments, at: At, words: Sequence[Word], simple: Simple) -> None:
    """chmod, chown, chgrp."""
    kinds = [(each, at.ground.locate(each).changed) for each in args.operands[1:] if each != "--"]
    far = [each for each, kind in kinds if kind in ("system", "root", "disk")]
    home = [each for each, kind in kinds if kind in ("home", "secret", "own")]
    if far and args.has("-R", "--recursive"):
        risk: Risk = "critical" if ("root" in [kind for _, kind in kinds]) else "high"
        found.add(risk, Rule.RIGHTS, f"changes who may read or write {shown(far)} and all below")
    elif far or home:
        found.add("high", Rule.RIGHTS, f"changes who may read or write {shown(far or home)}")
    if (
        Trait.MODE in known(args.name).traits
        and args.operands
        and re.search(r"^[ug]*\+[rwx]*s|^[2467][0-7]{3}$", args.operands[0])
    ):
        found.add("high", Rule.RIGHTS, "lets a program run with its owner's power")


def end_processes(found: Assessment, args: Arguments, at: At, words: Sequence[Word], simple: Simple) -> None:
    """kill."""
    numbers = [word for word in args.words if re.fullmatch(r"-?[0-9]+", word)]
    if "1" in args.operands or (numbers[-1:] == ["-1"] and len(args.words) > 1):
        found.add("high", Rule.KILL, "ends all processes, or the first of all")


_SENDING = re.compile(r"-d|--data(-\w+)?|--json|-F|--form|-T|--upload-file")


def transfer(found: Assessment, args: Arguments, at: At, words: Sequence[Word], simple: Simple) -> None:
    """curl and wget: what they write here and send there."""
    shapes = args.words
    program = known(args.name)
    for shape, value in pairwise(shapes):
        if shape in program.saves:
            if value not in ("-", "/dev/null"):
                write_file(found, value, at, verb="fetches into")
        elif _SENDING.fullmatch(shape) and (value.startswith("@") or "=@" in value or UNKNOWN in value):
            found.add("high", Rule.UPLOAD, "sends data to another machine")
    if Trait.SAVES_BY_ADDRESS in program.traits or args.has("-O", "--remote-name", "--remote-name-all"):
        for each in shapes:  # the file is called as the address ends
            if re.match(r"\w+://", each) and not found.protected:
                protect(found, each.partition("?")[0].rpartition("/")[2], at)
    if args.has(*program.uploads):
        found.add("high", Rule.UPLOAD, "sends data to another machine")
    if any(UNKNOWN in each and re.match(r"(https?:)?//|\w+\.", each) for each in shapes):
        found.add("medium", Rule.UPLOAD, "puts what is known only when it runs into an address")
    if simple.upstream and any(each in ("-", "@-") or each.endswith("@-") for each in shapes):
        found.add("high", Rule.UPLOAD, "sends what comes down a pipe to another machine")


_SED_RUNS = re.compile(r"(^|[;\n{}/!0-9$,])\s?e(\s|$)|/[gpiIm0-9]*e[gpiIm0-9]*\s?($|[;}])")


def _sed_runs(script: str) -> bool:
    """Whether a sed script may run a command: `e`, or an `e` among the flags of `s`. In time that grows with it."""
    if len(script) > LONGEST_SCRIPT:
        return True
    if _SED_RUNS.search(re.sub(r"\s+", lambda blank: "\n" if "\n" in blank[0] else " ", script)):
        return True
    for line in script.split("\n"):
        for mark in set(re.findall(r"s([^\w\s])", line)):
            second = line.find(mark, line.index(f"s{mark}") + 2)
            if second >= 0 and re.compile(rf"{re.escape(mark)}[gpiIm0-9]*e").search(line, second + 1):
                return True
    return False


def edit_stream(found: Assessment, args: Arguments, at: At, words: Sequence[Word], simple: Simple) -> None:
    """sed: it writes in place, or runs commands."""
    operands = args.operands
    if any(re.match(r"-[nErsuz]*i|--in-place", option) for option in args.options):
        for target in operands[1:] or operands:
            write_file(found, target, at, verb="changes")
    if operands and _sed_runs(operands[0]):
        found.add("high", Rule.CODE, "makes sed run a command")


def write_second(found: Assessment, args: Arguments, at: At, words: Sequence[Word], simple: Simple) -> None:
    """uniq: a second file is written."""
    for target in args.operands[1:2]:
        write_file(found, target, at, verb="overwrites")


def run_awk(found: Assessment, args: Arguments, at: At, words: Sequence[Word], simple: Simple) -> None:
    """awk: its program may run commands."""
    if re.search(r"\bsystem\b|\||getline|@load|@include", " ".join(args.words)):
        found.add("high", Rule.CODE, "makes awk run a command or read elsewhere")


def set_trap(found: Assessment, args: Arguments, at: At, words: Sequence[Word], simple: Simple) -> None:
    """trap: text that runs later."""
    _carry(found, words[1:2], [word.text for word in words[1:2]])


def define_alias(found: Assessment, args: Arguments, at: At, words: Sequence[Word], simple: Simple) -> None:
    """alias: text that runs later."""
    _carry(found, words[1:], [word.text and word.text.partition("=")[2] for word in words[1:]])


def _carry(found: Assessment, words: Sequence[Word], texts: Sequence[str | None]) -> None:
    for word, text in zip(words, texts, strict=True):
        if text and word.literal and text not in ("-", "-l", "-p"):
            found.scripts.append(text)


def steer_tarmac(found: Assessment, args: Arguments, at: At, words: Sequence[Word], simple: Simple) -> None:
    """tarmac itself: whoever may run it could allow themselves the rest."""
    found.add("high", Rule.ASK_TARMAC, "steers Tarmac itself")


def evaluate_index(found: Assessment, args: Arguments, at: At, words: Sequence[Word], simple: Simple) -> None:
    """test -v, printf -v, read, unset …: the shell runs what stands in the brackets of a variable's name."""
    brackets = [word.partition("[")[2] for word in args.words]
    if any("$(" in each or "`" in each for each in brackets):
        found.add("high", Rule.CODE, "makes the shell run what stands in brackets")


_SPECIALS: tuple[Special, ...] = (
    remove, copy_bytes, make_file_system, write_operands, unpack, mirror, change_rights, end_processes, transfer,
    edit_stream, write_second, run_awk, set_trap, define_alias, evaluate_index, steer_tarmac, remove_item,
    invoke_expression, write_item,
)  # fmt: skip
# By the names that the tables call them by.
SPECIALS = {each.__name__: each for each in _SPECIALS}


def guess_removal(found: Assessment, words: Sequence[Word], at: At) -> None:
    """`{rm,-rf,/}`: a brace expansion that becomes a removal."""
    for word in words:
        if word.brace and word.text:
            guess = tuple(word_of(each) for each in re.split(r"[{},]", word.text) if each)
            if guess and _removes(guess[0]):
                whole = (*guess, *(word_of(each.shape) for each in words[1:]))
                remove(found, arguments(whole), at, whole, Simple(whole, (), (), ""))
