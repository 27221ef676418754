"""One file for each shell that Tarmac can drive: what we type, and what it writes. `find_shell` chooses."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from tarmac.errors import BadRequest, ShellNotFound
from tarmac.terminals.shell.shells import Shell

KNOWN = ("bash", "zsh", "fish")


def find_shell(
    name: str | None = None, *, environ: Mapping[str, str] | None = None, arguments: Sequence[str] = ()
) -> Shell:
    """The shell of that name or path; bash by default, whatever the person's own login shell is."""
    wanted = name or "bash"
    kind = Path(wanted).name
    if "\0" in wanted or not kind:
        raise BadRequest(f"{wanted!r} is not the name of a shell")
    search = (environ or os.environ).get("PATH") or os.defpath
    found = _which(wanted, search) or _which(wanted, os.defpath)
    if kind not in KNOWN:
        if found:
            raise ShellNotFound(f"{kind} is not a shell Tarmac can drive yet", hint=f"it can drive: {', '.join(KNOWN)}")
        raise ShellNotFound(f"there is no shell {wanted!r} on this machine", hint=f"try one of: {', '.join(KNOWN)}")
    if not found:
        raise ShellNotFound(
            f"there is no {wanted} on this machine", hint=f"install it, or give the full path of a {kind}"
        )
    shell = _dialect(kind)(str(Path(found).absolute()), tuple(arguments))
    _check_arguments(shell)
    return shell


def _check_arguments(shell: Shell) -> None:
    """A shell at a terminal reads its commands there, so it takes options and nothing else."""
    value = False
    for each in shell.arguments:
        single = each[:1] in ("-", "+") and not each.startswith("--")
        if "\0" in each or (not value and (each[:1] not in ("-", "+") or each in ("-", "--"))):
            raise BadRequest(f"{each!r} is not an option of {shell.name}", hint="a terminal's shell takes only options")
        if not value and (each.startswith("--command") or (single and ("c" in each[1:] or "s" in each[1:]))):
            raise BadRequest(
                f"with {each} {shell.name} does not read from its terminal",
                hint="open the terminal, then run a command",
            )
        value = not value and each in shell.takes_value


def shell_elsewhere(name: str | None) -> Shell:
    """The shell of that name or path on another machine. Whether it is there is found out when it is started."""
    kind = Path(name or "bash").name
    if kind not in KNOWN:
        raise ShellNotFound(f"{kind} is not a shell Tarmac can drive yet", hint=f"it can drive: {', '.join(KNOWN)}")
    return _dialect(kind)(name or "bash")


def _dialect(kind: str) -> type[Shell]:
    """Only the one that is wanted is imported."""
    if kind == "zsh":
        from tarmac.terminals.shell.dialects.zsh import Zsh

        return Zsh
    if kind == "fish":
        from tarmac.terminals.shell.dialects.fish import Fish

        return Fish
    from tarmac.terminals.shell.dialects.bash import Bash

    return Bash


def _which(name: str, search: str) -> str | None:
    """Where the program is (shutil.which, without importing every compression there is)."""
    places = [""] if "/" in name else search.split(":")
    for place in places:
        path = os.path.join(place, name)  # noqa: PTH118
        if os.access(path, os.X_OK) and Path(path).is_file():
            return path
    return None
