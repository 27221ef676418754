"""Shells that have no parser here (fish, PowerShell …): plain words mean the same in all of them."""

from tarmac.policy import veto
from tarmac.policy.actions import Execute
from tarmac.policy.command import Line, Simple
from tarmac.policy.course import Pipeline
from tarmac.policy.words import word_of

_SIMPLE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=+- \t")
# Words that another shell takes for something of its own.
_ALIASES = frozenset(
    """
    ls dir cat echo pwd cp mv rm sort diff tee ps kill sleep type man curl wget history clear write cd set where
    select more measure start compare group foreach h r gc gci gl sl
""".split()
)


def words_of_any_shell(action: Execute) -> Line | None:
    """fish, PowerShell and others: plain words mean the same in all of them. None when the line holds more."""
    text = action.command.strip()
    words = text.split()
    if not words or not set(text) <= _SIMPLE or words[0] in _ALIASES or "=" in words[0] or text.startswith("-"):
        return None
    try:
        if veto.split(text) != words:
            return None
    except veto.Vetoed:
        return None
    simple = Simple(tuple(word_of(word) for word in words), (), (), text)
    return Line(text, [simple], steps=(Pipeline("always", (simple,), (False,)),))
