"""What PowerShell's cmdlets do where that depends on more than their words: removing, writing, running text.

Each function adds to an Assessment what one command would do, as those in specials.py.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from tarmac.policy.parse.command import Simple
from tarmac.policy.parse.words import Word
from tarmac.policy.programs.effects import Arguments, Assessment, shown
from tarmac.policy.programs.files_touched import At, protect, where, write_file
from tarmac.policy.rule import Rule

WRITING = frozenset(
    """
    set-content add-content out-file tee-object clear-content new-item copy-item move-item rename-item export-csv
""".split()
)
_RECURSE = re.compile(r"-r(e(c(u(r(se?)?)?)?)?)?(:\$true)?|/s|-rf|-fr|--recursive", re.IGNORECASE)
_FORCE = re.compile(r"-f(o(r(ce?)?)?)?(:\$true)?|/[qf]|-rf|-fr|--force", re.IGNORECASE)
_ROOT = re.compile(r"([A-Za-z]:)?[\\/]+[*.]*|[A-Za-z]:\*?")
_FETCHING = frozenset(["invoke-webrequest", "invoke-restmethod", "start-bitstransfer", "curl", "wget"])
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
    last = args.name in ("copy-item", "move-item", "rename-item")
    for target in named[-1:] or (plain[-1:] if last else plain[:1]):
        write_file(found, target, at, verb="writes")


def invoke_expression(found: Assessment, args: Arguments, at: At, words: Sequence[Word], simple: Simple) -> None:
    """Invoke-Expression: text as a command, in the worst case text from elsewhere."""
    others = {word.shape for each in (*simple.upstream, *simple.holds) for word in each.words[:1]}
    if others & _FETCHING or any(_FETCHED.search(each.text) for each in (simple, *simple.upstream)):
        found.add("critical", Rule.REMOTE, "runs code that it fetches from another machine")
    else:
        found.add("high", Rule.ASK_HIDDEN, "runs text that is known only when it runs", known=False)
