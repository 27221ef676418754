"""The environment of commands: no pager that waits, no prompt that nobody sees, none of Tarmac's secrets.

`wipe_own_environment` also hides these secrets in our own /proc/PID/environ, where a command could read them.
"""

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase, translate
from functools import lru_cache
from pathlib import Path

from tarmac.terminals.process.birthmark import COOKIE as COOKIE
from tarmac.terminals.settings import Settings

# What agents commonly set, so that programs neither start a pager nor ask.
QUIET = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GH_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "GIT_EDITOR": ":",
    "GIT_MERGE_AUTOEDIT": "no",
    "GIT_TERMINAL_PROMPT": "0",
    "GH_PROMPT_DISABLED": "1",
    "GCM_INTERACTIVE": "never",
    "DEBIAN_FRONTEND": "noninteractive",
    "VTE_VERSION": "0",
    "AI_AGENT": "tarmac",
}
# What a surrounding terminal or editor has set, and what would mislead programs in ours.
FOREIGN = (
    "COLUMNS",
    "LINES",
    "TERM_PROGRAM",
    "TERM_PROGRAM_VERSION",
    "BASH_ENV",
    "PROMPT_COMMAND",
    "VSCODE_*",
    "TMUX",
    "TMUX_PANE",
    "STY",
    "WINDOWID",
)
_FIELDS_BEFORE = 2  # of /proc/PID/stat: pid and name, which may hold blanks
_ENV_START, _ENV_END = 50, 51  # proc(5)

SECRET_WORDS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTH", "COOKIE")


# Variables whose values open accounts or databases. An agent's commands get them only by name.
COMMON_SECRETS = (
    "AWS_*", "*_TOKEN", "*_API_KEY", "*_SECRET", "*_SECRET_KEY", "*_SECRET_ACCESS_KEY", "*_ACCESS_KEY", "*_PASSWORD",
    "*_PASSWD", "*_PRIVATE_KEY", "*_CREDENTIALS", "*_AUTH_TOKEN", "*_PAT", "TOKEN", "API_KEY", "PASSWORD", "SECRET_KEY",
    "DATABASE_URL", "*_DATABASE_URL", "REDIS_URL", "MONGODB_URI", "MONGO_URL", "PGPASSWORD", "MYSQL_PWD", "*_DSN",
    "NPM_CONFIG_*AUTH*", "SLACK_WEBHOOK*", "AZURE_CLIENT_SECRET",
)  # fmt: skip
_NO_SECRETS = frozenset(
    "AWS_PROFILE AWS_DEFAULT_PROFILE AWS_REGION AWS_DEFAULT_REGION AWS_CONFIG_FILE AWS_CA_BUNDLE AWS_DEFAULT_OUTPUT "
    "AWS_PAGER".split()
)


def common_secrets(environ: Iterable[str], *, passed: Sequence[str] = ()) -> tuple[str, ...]:
    """The names among these that are kept from an agent's commands; `passed` are names and patterns that are not."""
    kept, secret = any_of(tuple(passed)), any_of(COMMON_SECRETS)
    found = [name for name in environ if name not in _NO_SECRETS and secret.match(name)]
    return tuple(sorted(name for name in found if not (passed and kept.match(name))))


def build(base: Mapping[str, str] | None, settings: Settings, *, cookie: str) -> dict[str, str]:
    """`base`, or else the environment of our own process, changed for commands."""
    dropped = any_of((*FOREIGN, *settings.secret_variables))
    env = {name: value for name, value in (os.environ if base is None else base).items() if not dropped.match(name)}
    env.update(QUIET)
    env["TERM"] = "xterm-256color"
    if not _is_utf8(env):
        env.pop("LC_ALL", None)
        env["LC_CTYPE"] = "C.UTF-8"
    if settings.zsh_clear_eol_mark:
        env["PROMPT_EOL_MARK"] = ""
    if settings.zsh_oh_my:
        env["ITERM_SHELL_INTEGRATION_INSTALLED"] = "Yes"
    if settings.zsh_p10k:
        env["POWERLEVEL9K_TERM_SHELL_INTEGRATION"] = "true"
    for name, value in settings.environment.items():
        if value:
            env[name] = value
        else:
            env.pop(name, None)
    front = [str(each.directory) for each in settings.path_contributions]
    if front:
        env["PATH"] = ":".join([*front, env.get("PATH", "/usr/local/bin:/usr/bin:/bin")])
    env[COOKIE] = cookie
    return env


def hidden(settings: Settings) -> tuple[str, ...]:
    """Names and prefixes (`AWS_*`) of variables that no command may see, whoever set them; not our own cookie."""
    found = [each for each in settings.secret_variables if re.fullmatch(r"[A-Za-z_]\w*\*?", each)]
    return tuple(each for each in found if not fnmatchcase(COOKIE, each))


@lru_cache(maxsize=8)
def any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """A pattern that matches what one of these matches as a file name pattern."""
    return re.compile("|".join(map(translate, patterns)))


def _is_utf8(env: Mapping[str, str]) -> bool:
    wanted = env.get("LC_ALL") or env.get("LC_CTYPE") or env.get("LANG") or ""
    return wanted.lower().replace("-", "").endswith("utf8")


def masked(name: str, value: str) -> str:
    """The value for display. A variable whose name looks like a secret is masked."""
    return "********" if any(word in name.upper() for word in SECRET_WORDS) else value


def changes(before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str | None]:
    """What was set, changed, or unset (None). Secrets are masked; variables that the shell itself sets are left out."""
    own = {"_", "PWD", "OLDPWD", "SHLVL"}
    changed: dict[str, str | None] = {
        name: masked(name, value) for name, value in now.items() if name not in own and before.get(name) != value
    }
    changed.update({name: None for name in before if name not in now and name not in own})
    return changed


def wipe_own_environment(settings: Settings) -> None:
    """Remove from our own process's environment what no command may see. Where that is not possible, do nothing.

    /proc/PID/environ shows what a process was started with, keys included. This removes them from the C library's
    environment and overwrites them in memory. `os.environ` is a copy and keeps them, for the model. Only for programs
    of our own: one that embeds Tarmac may need its environment.
    """
    if sys.platform != "linux":
        return
    import ctypes  # here, as many programs open no terminal

    secret = any_of(settings.secret_variables)
    start, end = _block()
    if start >= end:
        return
    at = start
    for entry in ctypes.string_at(start, end - start).split(b"\0"):
        name = os.fsdecode(entry.partition(b"=")[0])
        if name and secret.match(name) and name != COOKIE:
            os.unsetenv(name)  # the pointer first, then the memory
            ctypes.memset(at, 0, len(entry))
        at += len(entry) + 1


def _block() -> tuple[int, int]:
    """The addresses of our environment in memory; (0, 0) if the kernel does not tell."""
    try:
        fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
        return int(fields[_ENV_START - _FIELDS_BEFORE - 1]), int(fields[_ENV_END - _FIELDS_BEFORE - 1])
    except (OSError, ValueError, IndexError):
        return 0, 0
