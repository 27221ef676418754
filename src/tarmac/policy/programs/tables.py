"""The rules are data, read when first needed; whoever has an event loop reads them before, in a thread."""

from tarmac.policy import launchers
from tarmac.policy.paths import files
from tarmac.policy.programs import effects, grammar, wrappers


def read_tables() -> None:
    """Read all of them now: a few milliseconds, once in a process; more where no compiled files are kept."""
    effects.rules()
    grammar.programs()
    grammar.versions()
    wrappers.wrappers()
    launchers.refusal(["x"])
    files.protected_name("x")
