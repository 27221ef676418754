"""What a simple command would do, through all its wrappers: the tables, the special cases, the code it runs.

Simple → assess(simple, at) → Assessment. Wrappers are peeled on the way; the worst of all layers counts.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tarmac.policy.budget import Spent
from tarmac.policy.parse.words import UNKNOWN, Simple, Word
from tarmac.policy.programs.effects import (
    LOADING_VARIABLES,
    TELLING_VARIABLES,
    Arguments,
    Assessment,
    Effect,
    Peeled,
    arguments,
    from_tables,
    peel,
    program_name,
    shown,
)
from tarmac.policy.programs.program import Program, Trait, known, readers
from tarmac.policy.programs.specials import (
    SPECIALS,
    At,
    guess_removal,
    look_at_argument,
    look_for_protected,
    make_file_system,
    read_file,
    search,
    write_file,
)
from tarmac.policy.verdict import EffectKind, Risk, Rule

_INLINE = ("-c", "-e", "-r", "--eval", "-E", "-S", "-p")
_FETCHING = re.compile(
    r"urllib|urlopen|requests\.|http\.client|LWP|Net::HTTP|open-uri|fetch\(|https?://|curl|wget|file_get_contents",
    re.IGNORECASE,
)
_STARTING = re.compile(
    r"\b(exec|eval|system|popen|spawn\w*|subprocess|pty|os\.exec\w*|child_process|qx|shell_exec|passthru|Function)\b|`"
)
_SOCKET = re.compile(r"\bsocket\b|/dev/tcp|fsockopen|TCPSocket|net\.connect|net\.Socket", re.IGNORECASE)
_REMOVING = re.compile(
    r"rmtree|unlink|remove\(|rmdir|rm\s+-|rmSync|rm_rf|FileUtils|fs\.rm|File\.delete|shutil|truncate", re.IGNORECASE
)
_REMOVING_ALL = re.compile(r"rmtree\(\s*['\"](/|~|/\*)['\"]|rm_rf\W+/['\"]")
_ALL = re.compile(r"[\"']?(/|~|\*|/\*|\$HOME)[\"']?(?=[\"';)]|$)")
# Words by which such a program prints its text for eval.
_SETTING_UP = frozenset(["hook", "init", "shellenv", "-s"])
_MAKES_FILE_SYSTEM = re.compile(r"mkfs|newfs_")


def names_of(simple: Simple) -> set[str]:
    """The program names in a command and in the wrappers around it: every early word that could be one."""
    return {name for word in simple.words[:8] if (name := program_name(word))}


def _some(names: Iterable[str], *traits: Trait) -> bool:
    """Whether one of these programs has one of these traits."""
    return any(not known(name).traits.isdisjoint(traits) for name in names)


def run_code(found: Assessment, simple: Simple, args: Arguments, words: tuple[Word, ...], at: At) -> None:
    """Add what an interpreter is given to run."""
    operands = [each for each in args.operands if each != "--"]
    of = known(args.name).traits
    shell, in_shell, joins = Trait.SHELL in of, Trait.RUNS_IN_SHELL in of, Trait.JOINS_WORDS in of
    inline = args.has(*_INLINE) and not in_shell
    inside = {name for each in simple.holds for name in names_of(each)}
    if _some(inside, Trait.FETCHES):
        found.add("critical", Rule.REMOTE, "runs code that it fetches from another machine")
    elif (shell or in_shell) and _some(inside, Trait.DECODES):
        found.add("critical", Rule.DISGUISED, "runs code that is disguised")
    reads_stdin = not operands or operands[0] in ("-", "/dev/stdin") or (shell and args.has("-s"))
    piped = {name for each in simple.upstream for name in names_of(each)}
    if piped and reads_stdin and not inline and not joins:
        _piped(found, simple, piped)
    code = " ".join(args.words)
    if inline and not shell:
        _inline(found, code, fetched=_some(piped, Trait.FETCHES))
    if any(at.ground.locate(each).path in at.fetched for each in operands[:2] if UNKNOWN not in each):
        found.add("critical", Rule.REMOTE, "runs code that it just fetched from another machine")
    if joins:
        _evaluated(found, words, inside)
    if shell and not operands:
        _here_documents(found, simple)


def _evaluated(found: Assessment, words: tuple[Word, ...], inside: set[str]) -> None:
    if all(word.literal for word in words[1:]):
        found.scripts.append(" ".join(word.text or "" for word in words[1:]))
    elif not (inside and inside <= _SETTING_UP) and not _some(inside, Trait.PRINTS_SETUP):
        found.add("high", Rule.ASK_HIDDEN, "runs text that is known only when it runs", known=False)


def _here_documents(found: Assessment, simple: Simple) -> None:
    for redirect in simple.redirects:
        if redirect.op in ("<<", "<<-", "<<<"):
            text = redirect.heredoc if redirect.heredoc is not None else redirect.target
            if text is not None and text.text is not None:
                found.scripts.append(text.text)
            else:
                found.add("high", Rule.ASK_HIDDEN, "runs text that is known only when it runs", known=False)


def _piped(found: Assessment, simple: Simple, piped: set[str]) -> None:
    if _some(piped, Trait.FETCHES):
        found.add("critical", Rule.REMOTE, "runs code that it fetches from another machine")
    elif _some(piped, Trait.DECODES):
        found.add("critical", Rule.DISGUISED, "runs code that is disguised")
    else:
        words = simple.upstream[-1].literal_words()
        if words and _some(words[:1], Trait.PRINTS_WORDS) and len(simple.upstream) == 1:
            found.scripts.append(" ".join(w for w in words[1:] if not re.fullmatch(r"-[neE]+", w)).replace("\\n", "\n"))
        found.add("high", Rule.PIPED, "runs what comes down a pipe")


def _removes_all(code: str) -> bool:
    """`rm -r /` in any text, word by word: an expression for it would take the square of its length."""
    after = recursive = False
    for word in code.split():
        if after and word.startswith("-"):
            recursive |= "r" in word or "R" in word
        elif recursive and _ALL.match(word):
            return True
        elif not word.startswith("-"):
            after = recursive = False
        if re.search(r"\brm$", word):
            after = True
    return False


def _inline(found: Assessment, code: str, *, fetched: bool) -> None:
    if _REMOVING_ALL.search(code) or _removes_all(code):
        found.add("critical", Rule.CODE, "runs code that removes all it can reach")
    elif _SOCKET.search(code) and _STARTING.search(code):
        found.add("critical", Rule.SHELL, "gives another machine a shell on this one")
    elif (fetched or _FETCHING.search(code)) and _STARTING.search(code):
        found.add("critical", Rule.REMOTE, "runs code that it fetches from another machine")
    elif _STARTING.search(code) or _REMOVING.search(code) or _SOCKET.search(code):
        found.add("high", Rule.CODE, "runs code that starts programs, removes files or speaks with machines")


def fetched_files(simple: Simple, at: At) -> frozenset[str]:
    """The files a command downloads, as far as they are named."""
    saves = known(program_name(simple.words[0])).saves if simple.words else ()
    if not saves:
        return frozenset()
    shapes = [word.shape for word in simple.words]
    names: list[str] = []
    for index, shape in enumerate(shapes):
        if shape in saves:
            names += shapes[index + 1 : index + 2]
        if shape.startswith(("http://", "https://")):
            names.append(shape.partition("?")[0].rstrip("/").rpartition("/")[2])
    names += [each.target.shape for each in simple.redirects if each.target is not None and each.op in (">", ">|")]
    return frozenset(at.ground.locate(name).path for name in names if name and UNKNOWN not in name)


def sends(simple: Simple) -> bool:
    """Whether a command carries to another machine what others read: by a pipe, a substitution or a file."""
    names = names_of(simple)
    if not _some(names, Trait.FETCHES, Trait.SENDS):
        return False
    carried = bool(simple.upstream or simple.holds or simple.redirects)
    return carried or _some(names, Trait.CARRIES) or any("@" in word.shape for word in simple.words[1:])


MOST_WORDS = 300  # of one command that are looked at one by one
DEEPEST = 8  # wrappers in wrappers
MOST_READ = 2_000  # words of a command that are read at all: the first and the last
_SYSTEM_PROGRAM = re.compile(r"^/(usr/(local/)?)?s?bin/[^/]+$|^/opt/homebrew/bin/[^/]+$|^[^/]+$")
STREAM = re.compile(r"/dev/(null|stdout|stderr|tty|fd/[0-9]+)")  # to write there is to print


def assess(simple: Simple, at: At) -> Assessment:
    """What `simple` would do, with all wrappers around it."""
    found = Assessment()
    for name, _ in simple.assigns:
        if TELLING_VARIABLES.match(name):
            _telling(found, name)
        elif simple.words:
            found.add("low", Rule.ENVIRONMENT, f"sets the variable {name}")
    try:
        _redirections(found, simple, at)
        _command(found, simple, at)
    except Spent as error:
        found.add("high", Rule.ASK_WRAPPERS, error.does, known=False)
    return found


def _command(found: Assessment, simple: Simple, at: At) -> None:
    if simple.words:
        words = simple.words
        if len(words) > MOST_READ:
            found.add("high", Rule.ASK_WRAPPERS, f"has more than {MOST_READ} words", known=False)
            words = (*words[: MOST_READ // 2], *words[-MOST_READ // 2 :])
            simple = replace(simple, words=words)
        _words(found, simple, words, at, depth=0)
    elif not found.effects:
        found.add("low", Rule.ASSIGN, "sets a variable of the shell" if simple.assigns else "does nothing")


def _telling(found: Assessment, name: str) -> None:
    risk: Risk = "high" if LOADING_VARIABLES.match(name) else "medium"
    found.add(risk, Rule.ENVIRONMENT, f"sets {name}, which tells programs what to run")


def _redirections(found: Assessment, simple: Simple, at: At) -> None:
    for each in simple.redirects:
        if each.target is None or "<<" in each.op:
            continue
        target = each.target.shape
        if re.search(r"/dev/(tcp|udp)/", target):
            found.add("critical", Rule.SOCKET, f"speaks with another machine through {shown([target])}")
        elif each.op == "<":
            read_file(found, target, at)
        elif each.op == ">&" and re.fullmatch(r"[0-9]+-?|-", target):
            pass  # between streams
        elif each.op.startswith((">", "&>", "<>")) and not STREAM.fullmatch(target):
            write_file(found, target, at, verb="appends to" if ">>" in each.op else "overwrites")


def _words(found: Assessment, simple: Simple, words: tuple[Word, ...], at: At, *, depth: int) -> None:
    if depth > DEEPEST:
        found.add("high", Rule.ASK_WRAPPERS, "hides its command behind too many others", known=False)
        return
    first = words[0]
    if first.text is None or first.brace or first.home or first.glob:
        found.add("high", Rule.ASK_HIDDEN, "runs a command whose name is known only when it runs", known=False)
        guess_removal(found, words, at)
        for word in words[1:]:
            look_at_argument(found, "", word, at)
        return
    name = program_name(first) or ""
    args, program = arguments(words), known(name)
    if len(words) > MOST_WORDS:
        found.add(
            "medium", Rule.ASK_WORDS, f"has {len(words)} words, of which {MOST_WORDS} were looked at", known=False
        )
    for number, word in enumerate(words[1:MOST_WORDS], 2):
        look_at_argument(found, name, word, at, written=number == len(words) and Trait.LAST_WRITTEN in program.traits)
    peeled = peel(words)
    if peeled is not None:
        _peeled(found, simple, words, peeled, at, depth=depth)
    if not program.traits.isdisjoint((Trait.SHELL, Trait.INTERPRETS)):
        run_code(found, simple, args, words, at)
    special = make_file_system if _MAKES_FILE_SYSTEM.match(name) else _SPECIALS.get(program.special)
    if special is not None:
        special(found, args, at, words, simple)
    listed = from_tables(found, args, vague=peeled is not None and bool(peeled.wrapper.does))
    if peeled is None and len(words) <= MOST_WORDS:
        look_for_protected(found, args, words, at)
    place = at.ground.locate(first.text) if "/" in first.text else None
    if place is not None and (place.path in at.fetched or not _SYSTEM_PROGRAM.match(first.text)):
        _own_program(found, first.text, place.path in at.fetched, inside=place.inside)
    elif not listed and (special is None or Trait.PARTIAL in program.traits) and peeled is None:
        _unlisted(found, program, name, args, at)


def _own_program(found: Assessment, text: str, fetched: bool, *, inside: bool) -> None:
    if fetched:
        found.add("critical", Rule.REMOTE, "runs what it just fetched from another machine")
    else:
        whose = "a program of the project" if inside else "a program from an unusual place"
        found.add("medium", Rule.PROJECT, f"runs {shown([text])}, {whose}")


def _unlisted(found: Assessment, program: Program, name: str, args: Arguments, at: At) -> None:
    """A reader that wasn't proven, or a program nobody knows."""
    quiet = Trait.QUIET in program.traits
    by_name = quiet or Trait.NAMES_ONLY in program.traits
    if name in readers():
        outside = [each for each in args.operands if at.outside(each)]
        if outside and not by_name:
            found.add("medium", Rule.READ, f"reads {shown(outside)}, outside of the workspace")
        elif any(UNKNOWN in each for each in args.operands) and not by_name:
            found.add("medium", Rule.READ, "reads what is known only when it runs")
        elif Trait.SETS_VARIABLE in program.traits and args.has("-v"):
            found.add("low", Rule.READ, "sets a variable")
        elif quiet:
            found.add("low", Rule.READ, program.reads.why.partition(",")[0] if program.reads else "reads")
        else:
            found.add("low", Rule.READ, f"reads {shown(args.operands)}" if args.operands else "reads")
    elif Trait.ANSWERS in program.traits:
        found.add("medium", Rule.TOOL, f"runs {name}")
    else:
        found.add("medium", Rule.ASK_UNKNOWN, f"runs `{shown([name])}`, which is not known", known=False)


# wrappers


def _peeled(found: Assessment, simple: Simple, words: tuple[Word, ...], peeled: Peeled, at: At, *, depth: int) -> None:
    wrapper = peeled.wrapper
    for name in peeled.assigns:
        if TELLING_VARIABLES.match(name):
            _telling(found, name)
    before = len(found.effects)
    if peeled.script is not None:
        found.scripts.append(peeled.script)
        if wrapper.fed:
            found.add("medium", Rule.FED, "runs a command with words that come from elsewhere")
    elif peeled.hidden:
        found.add("high", Rule.ASK_HIDDEN, "runs text that is known only when it runs", known=False)
    elif peeled.words:
        inner = (*peeled.words, Word("…", None, UNKNOWN)) if wrapper.fed else peeled.words
        _words(found, replace(simple, words=inner), inner, at, depth=depth + 1)
        if Trait.ADMINISTRATOR in known(wrapper.name).traits:
            _as_administrator(found, inner)
        if not peeled.certain or wrapper.project or wrapper.risk == "medium":
            _later(found, simple, inner, at, depth=depth)
    if wrapper.does:
        found.effects[before:] = [
            replace(each, where="" if wrapper.elsewhere else each.where, how=(*each.how, wrapper.does))
            for each in found.effects[before:]
        ]
    if wrapper.risk != "low":
        rule, does = f"effect.{wrapper.name.replace(' ', '.')}", f"runs a command {wrapper.does}".strip()
        told = any(effect.risk != "low" for effect in found.effects[before:])  # with how it is done
        kind = EffectKind.CONNECTS if wrapper.elsewhere else EffectKind.RUNS
        found.effects.append(Effect(wrapper.risk, rule, does, kind, vague=told))
    if wrapper.project:
        _project(found, words, peeled)


def _later(found: Assessment, simple: Simple, inner: tuple[Word, ...], at: At, *, depth: int) -> None:
    """The command inside may begin later than we think: look for the worst."""
    for start in range(1, min(len(inner), 6)):
        if Trait.DANGEROUS_INSIDE in known(program_name(inner[start])).traits:
            _words(found, replace(simple, words=inner[start:]), inner[start:], at, depth=depth + 1)


def _project(found: Assessment, words: tuple[Word, ...], peeled: Peeled) -> None:
    """npx, uv run …: what they start may be fetched first; well-known tools weigh less."""
    name = program_name(peeled.words[0]) if peeled.words else None
    fetched = peeled.wrapper.fetches or arguments(words).has("-y", "--yes", "-p", "--package")
    common = name is not None and Trait.ANSWERS in known(name.partition("@")[0]).traits
    found.add("high" if fetched and not common else "medium", Rule.PROJECT, peeled.wrapper.project)
    found.effects = [effect for effect in found.effects if effect.rule != Rule.ASK_UNKNOWN]


def _as_administrator(found: Assessment, inner: Sequence[Word]) -> None:
    name = program_name(inner[0]) or ""
    if Trait.CHANGES_RIGHTS in known(name).traits or name.startswith("mkfs"):
        found.add("critical", Rule.SUDO, f"runs {name} with power over the whole machine")


def _enter(found: Assessment, simple: Simple, inner: tuple[Word, ...], at: At) -> None:
    _words(found, replace(simple, words=inner, upstream=()), inner, at, depth=1)


_SPECIALS = {**SPECIALS, "find": search(_enter)}
