"""The environment of a plan: a PATH that nobody in the workspace can change, and variables without secrets or switches.

A plan's words go to programs unchanged. Programs also read their environment, so it is made here from a short list.
git's own switches turn off everything that a repository could make it start.
"""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

KEPT = ("HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "LC_COLLATE", "TZ", "TMPDIR")
SYSTEM_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
QUIET = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "MANPAGER": "cat",
    "GIT_PAGER": "cat",
    "GH_PAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "LESSSECURE": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ASKPASS": "true",
    "SSH_ASKPASS": "true",
    "GOTOOLCHAIN": "local",
    "PYTHONSAFEPATH": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "NPM_CONFIG_UPDATE_NOTIFIER": "false",
    "HOMEBREW_NO_AUTO_UPDATE": "1",
}
GIT_SWITCHES = {
    "core.fsmonitor": "false",
    "core.pager": "cat",
    "core.hooksPath": "/dev/null",
    "core.sshCommand": "false",
    "core.editor": "false",
    "log.showSignature": "false",
    "gpg.program": "false",
    "gpg.ssh.program": "false",
    "gpg.x509.program": "false",
    "protocol.ext.allow": "never",
    "safe.bareRepository": "explicit",
}


def environment(environ: Mapping[str, str], *, workspace: Path) -> dict[str, str]:
    """The whole environment of a plan's programs, out of the person's own (never out of an agent's shell)."""
    made = {name: environ[name] for name in KEPT if name in environ}
    made |= QUIET
    made["PATH"] = ":".join(search_path(environ.get("PATH", ""), workspace=workspace))
    made["GIT_CONFIG_COUNT"] = str(len(GIT_SWITCHES))
    for number, (key, value) in enumerate(GIT_SWITCHES.items()):
        made[f"GIT_CONFIG_KEY_{number}"] = key
        made[f"GIT_CONFIG_VALUE_{number}"] = value
    return made


def search_path(path: str, *, workspace: Path) -> tuple[str, ...]:
    """The person's PATH without what an agent could fill: relative folders, the workspace's, those others may write."""
    inside = os.path.realpath(workspace)
    found: dict[str, None] = {}
    for folder in dict.fromkeys((*path.split(":"), *SYSTEM_PATH)):
        if not os.path.isabs(folder):
            continue
        real = os.path.realpath(folder)
        if not (real + "/").startswith(inside.rstrip("/") + "/") and not _open_to_all(real):
            found[folder] = None
    return tuple(found)


def _open_to_all(folder: str) -> bool:
    try:
        return bool(os.stat(folder).st_mode & stat.S_IWOTH)
    except OSError:
        return False
