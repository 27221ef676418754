"""The environment commands run in: no pager that waits, no prompt nobody sees, none of Tarmac's secrets (T23, T33)."""

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase, translate
from functools import lru_cache

from tarmac.terminals.settings import Settings

# The union of what the field sets (research/terminals.md B), so that programs neither page nor ask.
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
# What a surrounding terminal or editor left behind and would mislead programs in ours.
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
COOKIE = "TARMAC_TERMINAL"  # by its value, unique on the machine, orphans are found (processes.sweep)
SECRET_WORDS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTH", "COOKIE")


def build(base: Mapping[str, str], settings: Settings, *, cookie: str) -> dict[str, str]:
    """`base` (the host's own environment) made fit for commands."""
    dropped = any_of((*FOREIGN, *settings.secret_variables))
    env = {name: value for name, value in base.items() if not dropped.match(name)}
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
    """Names and beginnings of names (`AWS_*`) that no command may see, whoever set them; not our own cookie."""
    found = [each for each in settings.secret_variables if re.fullmatch(r"[A-Za-z_]\w*\*?", each)]
    return tuple(each for each in found if not fnmatchcase(COOKIE, each))


@lru_cache(maxsize=8)
def any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """What matches one of these, as file names are matched."""
    return re.compile("|".join(map(translate, patterns)))


def _is_utf8(env: Mapping[str, str]) -> bool:
    wanted = env.get("LC_ALL") or env.get("LC_CTYPE") or env.get("LANG") or ""
    return wanted.lower().replace("-", "").endswith("utf8")


def masked(name: str, value: str) -> str:
    """The value as it may be shown: secrets by their name are not (T31)."""
    return "********" if any(word in name.upper() for word in SECRET_WORDS) else value


def changes(before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str | None]:
    """What was set, changed, or (None) unset since; secrets masked, the shell's own book-keeping left out."""
    own = {"_", "PWD", "OLDPWD", "SHLVL"}
    changed: dict[str, str | None] = {
        name: masked(name, value) for name, value in now.items() if name not in own and before.get(name) != value
    }
    changed.update({name: None for name in before if name not in now and name not in own})
    return changed
