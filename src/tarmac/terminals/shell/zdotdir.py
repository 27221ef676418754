"""A private ZDOTDIR for the commands of a terminal, removed with it (T23, `zdotdir`).

Its files run the user's own, which see the place they know; but a zsh that a command starts keeps what it writes there
(completion dumps, histories) to itself.
"""

from collections.abc import Mapping
from pathlib import Path

from tarmac.terminals.shell.shells import quote

FILES = (".zshenv", ".zprofile", ".zshrc", ".zlogin")
_RUN = """\
ZDOTDIR=${{__tarmac_theirs-{theirs}}}
if [[ -r $ZDOTDIR/{name} ]]; then 'builtin' '.' "$ZDOTDIR/{name}"; fi
__tarmac_theirs=${{ZDOTDIR-{theirs}}} ZDOTDIR={ours}
"""


def private_zdotdir(folder: Path, env: Mapping[str, str]) -> dict[str, str]:
    """Make it in `folder`; the environment with it."""
    place = folder / "private-zdotdir"
    place.mkdir()
    theirs = env.get("ZDOTDIR") or env.get("HOME", "/")
    for name in FILES:
        text = _RUN.format(name=name, theirs=quote(theirs), ours=quote(str(place)))
        (place / name).write_text(text)
    return {**env, "ZDOTDIR": str(place)}
