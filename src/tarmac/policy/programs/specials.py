"""Programs whose deeds depend on what they are pointed at: rm, dd, find, cp, chmod, curl, sed … The floor is here.

Each function adds to an Assessment what one command would do. `enter` judges a command inside (find -exec).
"""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

from tarmac.policy.budget import elsewhere, note
from tarmac.policy.parse.words import UNKNOWN, Simple, Word, word_of
from tarmac.policy.programs.effects import Arguments, Assessment, arguments, shown
from tarmac.policy.programs.files_touched import (
    At,
    Special,
    copy_bytes,
    mirror,
    protect,
    unpack,
    where,
    write_file,
    write_operands,
)
from tarmac.policy.programs.program import Trait, known
from tarmac.policy.programs.repository import tracks
from tarmac.policy.programs.wrappers import program_name
from tarmac.policy.rule import Rule
from tarmac.policy.verdict import Risk

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
        found.add("critical", rule, "removes the root of the machine and all below it", deny=unix)
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
        found.add("critical", Rule.FLOOR_ROOT, "removes the root of the machine and all below it", deny=True)
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
                found.add("critical", Rule.FLOOR_ROOT, "removes the root of the machine and all below it", deny=True)
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
