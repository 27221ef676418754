"""Files that a command reads or writes, and how much that weighs: by where they are and how they are named."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from tarmac.errors import PlaceFailed
from tarmac.policy.budget import Spent, elsewhere, note, spend
from tarmac.policy.parse.words import UNKNOWN, Simple, Word
from tarmac.policy.paths.files import Files
from tarmac.policy.paths.places import Ground, Place, expand
from tarmac.policy.programs.effects import Arguments, Assessment, shown
from tarmac.policy.programs.program import Trait, grammars, known
from tarmac.policy.rule import EffectKind, Rule
from tarmac.policy.verdict import Risk, worst

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
    """A file is read by redirection."""
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
        found.add(risk, Rule.WRITE, f"{verb} {shown([place.shown])}", where=where(place))


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
            return ", in somebody's home"
        case "secret":
            return ", which looks like credentials"
        case "root":
            return ", the root of the machine"
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
        found.add("critical", Rule.MOVE, f"moves {shown(far)} away: the root of the machine")
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
    """tar and unzip: where they unpack to; what is in them nobody knows."""
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
        found.add("critical", Rule.REMOVE, "deletes all below the root of the machine that is not in its source")
    write_file(found, into, at, verb="copies into")
    for each in _landing(into, operands[:-1], at, contents=True):
        protect(found, each, at)


def _values(args: Arguments) -> set[str]:
    return {word.partition("=")[2] for word in args.options if "=" in word}


# Any other program

_OUTPUT = re.compile(r"-o|--out(put)?(-?(dir|file|path))?|--target-dir|--(c|m|b)?cpuprofile|-coverprofile|--save")


@cache
def _readers() -> frozenset[str]:
    """Programs, and those that have commands of their own, of which the tables of reading know."""
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
