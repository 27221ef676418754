"""Shells that have no parser here: what of their lines means the same in bash, and can be read as bash.

fish: plain or quoted words, joined by | ; && || and `; and`, `; or`. PowerShell and others: plain words of a program
that is no builtin or alias of any of them. Everything else is read for its risk alone.
"""

import re

from tarmac.policy.actions import Execute
from tarmac.policy.parse.parser import dialect_of

# No quotes, no expansions, nothing active in any shell.
_PLAIN = re.compile(r"[A-Za-z0-9_./=+-]+(?:[ \t]+[A-Za-z0-9_./:=+-]+)*")
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
    if not _PLAIN.fullmatch(text) or words[0] not in _PROGRAMS:
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
