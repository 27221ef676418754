"""PURE: was a shell or an interpreter started to run something, or to be typed commands into?

`bash deploy.sh` that asks "Go on?" reads an answer; `bash` that shows its prompt reads commands. The kernel sees both
wait for the same thing; the words they were started with tell them apart. Where these leave a doubt, it reads commands.
"""

import re
from collections.abc import Sequence

_SHELLS = frozenset(["ash", "bash", "dash", "ksh", "mksh", "rbash", "sh", "zsh"])  # not fish: its -C runs, then asks
_READ_COMMANDS = frozenset(["pdb", "code", "asyncio", "IPython", "ptpython", "bpython", "sqlite3"])  # python -m …
_VERSION = re.compile(r"[\d.]+$")


def runs_a_script(name: str, words: Sequence[str]) -> bool:
    """Whether the process `name`, started with `words`, runs a script or a piece of code, and reads no commands."""
    plain = _VERSION.sub("", name.lstrip("-"))
    if plain in _SHELLS:
        return _shell(words[1:])
    if plain in ("python", "pypy"):
        return _python(words[1:])
    if plain in ("node", "nodejs"):
        return _node(words[1:])
    return False


def _shell(words: Sequence[str]) -> bool:
    rest = iter(words)
    for word in rest:
        if word[:1] not in ("-", "+"):
            return True  # a script, or after -c the code
        if word in ("-", "--"):
            return word == "--" and next(rest, None) is not None
        if word.startswith("--"):
            if word in ("--rcfile", "--init-file"):
                next(rest, None)
            elif word == "--interactive":
                return False
        elif "i" in word or "s" in word:
            return False
        elif "o" in word.lower():
            next(rest, None)
    return False


def _python(words: Sequence[str]) -> bool:
    rest = iter(words)
    for word in rest:
        if not word.startswith("-"):
            return True
        if word.startswith("-m"):
            return (word[2:] or next(rest, "")) not in _READ_COMMANDS
        if word == "-" or (word[1:2] != "-" and "i" in word):
            return False
        if word[1:2] != "-" and "c" in word:
            return True
        if word in ("-W", "-X", "--check-hash-based-pycs"):
            next(rest, None)
    return False


def _node(words: Sequence[str]) -> bool:
    """Its options are many, and some take a word: only what comes first is sure."""
    first = words[0] if words else "-"
    return first in ("-e", "-p", "--eval", "--print") or not (first.startswith("-") or first == "inspect")
