"""What "always allow" may store. A program that runs programs is never allowed by its first word.

refusal(words)          → why this prefix can't be granted, or ""
line_refusal(line)      → the same of a whole line
fits(prefix, words)     → whether words begin with it, and no option after it makes another thing of it
suggest(line, parts, …) → what the person could be offered: the exact line, and a prefix for each part

The tables say of each program what may be granted of it: `grant`, `grant_words`, `turning` …
"""

import re
from collections.abc import Sequence

from tarmac.policy.programs.program import Program, Trait, known
from tarmac.policy.verdict import Part, Risk, SuggestedGrant
from tarmac.policy.visible import is_plain

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
                return f"`{name}` alone can do anything: say which of its commands"
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
    """Whether `words` begin with `prefix`, word by word, and mean no other thing by what follows."""
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
            return f"`{name}` alone runs anything: name the script"
        case ["-m", module, *_] if Trait.MODULES in program.traits and module not in _MODULES_WHOLE_LINE:
            return "" if _PLAIN_WORD.fullmatch(module) else "that is no module"
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
