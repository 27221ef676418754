"""What a table of options can't say: one small function for each program that needs it.

It sees what the table understood, and raises Unproven. (Programs that no table fits are in own_grammars.py.)
"""

import re
from collections.abc import Callable

from tarmac.policy.programs.grammar import ParsedArguments
from tarmac.policy.programs.scripts import check_awk, check_jq, check_sed
from tarmac.policy.verdict import Unproven


def _names(reading: ParsedArguments) -> set[str]:
    return {name for name, _ in reading.options}


def _first(reading: ParsedArguments, *known: str, none: bool = False) -> None:
    if not reading.operands:
        if none:
            return
        raise Unproven("without a word it does more than show")
    if reading.operands[0] not in known:
        raise Unproven(f"`{reading.operands[0]}` is not known to only show")


def _sed(reading: ParsedArguments) -> None:
    scripts = [value for name, value in reading.options if name in ("e", "expression") and value is not None]
    scripts = scripts or reading.operands[:1]
    if not scripts:
        raise Unproven("sed lacks its script")
    for script in scripts:
        check_sed(script)


def _awk(reading: ParsedArguments) -> None:
    if not reading.operands and _names(reading) & {"version", "help"}:
        return
    if not reading.operands:
        raise Unproven("awk lacks its program")
    check_awk(reading.operands[0])
    if any("=" in operand for operand in reading.operands[1:] if "/" not in operand.partition("=")[0]):
        raise Unproven("awk takes a word with = for an assignment")


def _jq(reading: ParsedArguments) -> None:
    if reading.operands:
        check_jq(reading.operands[0])


def _yq(reading: ParsedArguments) -> None:
    for operand in reading.operands[:2]:
        check_jq("" if operand in ("e", "eval", "ea", "eval-all") else operand)


def _date(reading: ParsedArguments) -> None:
    for operand in reading.operands:
        if not operand.startswith("+"):
            raise Unproven("date with such a word sets the clock")


def _pretty(reading: ParsedArguments) -> None:
    """A format that tells of signatures has them checked, by the program that the configuration names."""
    for name, value in reading.options:
        if name == "submodule" and value and value.startswith("d"):
            raise Unproven("git shows a submodule's changes with that one's own settings")
        if name in ("pretty", "format", "sort") and re.search(r"%[-+ ]?G|%\(signature", value or ""):
            raise Unproven("it starts the program that checks signatures")


def _git_listing(reading: ParsedArguments) -> None:
    _pretty(reading)
    asks = {"l", "list", "contains", "no-contains", "merged", "no-merged", "points-at"}
    if reading.operands and not asks & _names(reading):
        raise Unproven("a name given to it would be made")


def _git_remote(reading: ParsedArguments) -> None:
    _first(reading, "get-url", none=True)


_HARMLESS_KEYS = re.compile(r"\^?(alias|user|branch|remote|core|color|diff|merge|pull|push|init)(\\?\.|$)[\w.\\*$-]*")


def _git_config(reading: ParsedArguments) -> None:
    given = _names(reading)
    words = reading.operands
    _no_secrets(reading)
    if {"l", "list"} & given or words[:1] == ["list"]:
        raise Unproven("it prints all settings, which may hold credentials")
    if "get-regexp" in given and not (words and _HARMLESS_KEYS.fullmatch(words[0])):
        raise Unproven("it prints settings that may hold credentials")
    if any(re.search(r"extraheader|insteadof|cookie|helper|proxy", word, re.IGNORECASE) for word in words):
        raise Unproven("it asks for what may hold secrets")
    alone = len(words) == 1 and "." in words[0]
    asks = bool({"get", "get-all", "get-regexp"} & given)
    if not (asks or alone or (words[:1] == ["get"] and len(words) <= 2)):
        raise Unproven("git config with a value sets it")


def _dry(reading: ParsedArguments) -> None:
    if not {"n", "dry-run"} & _names(reading):
        raise Unproven("without -n it does more than say what it would do")


def _offline(reading: ParsedArguments) -> None:
    if reading.operands and "n" not in _names(reading):
        raise Unproven("it asks another machine")


def _tee(reading: ParsedArguments) -> None:
    if not set(reading.operands) <= {"/dev/null", "/dev/stderr", "/dev/stdout"}:
        raise Unproven("it writes files")


def _needs_p(reading: ParsedArguments) -> None:
    if not {"p", "print-cache"} & _names(reading):
        raise Unproven("without -p it would change the machine")


def _fuser(reading: ParsedArguments) -> None:
    if not all(re.fullmatch(r"[0-9]+/(tcp|udp)", word) for word in reading.operands):
        raise Unproven("only ports are known")


def _to_stdout(reading: ParsedArguments) -> None:
    if reading.operands[1:] != ["-"]:
        raise Unproven("it would write a file")


def _git_apply(reading: ParsedArguments) -> None:
    if not {"stat", "numstat", "summary", "check"} & _names(reading):
        raise Unproven("it changes files")


def _reflog(reading: ParsedArguments) -> None:
    _pretty(reading)
    if reading.operands and reading.operands[0] in ("expire", "delete", "drop", "write"):
        raise Unproven("it makes git forget")


def _pager(reading: ParsedArguments) -> None:
    if any(operand.startswith("+") for operand in reading.operands):
        raise Unproven("a pager's + gives it a command")
    if not reading.operands and not reading.options:
        return


def _ls(reading: ParsedArguments) -> None:
    if {"R", "recursive"} & _names(reading):
        _recursive(reading)


def _seq(reading: ParsedArguments) -> None:
    if not all(re.fullmatch(r"-?[0-9.]{1,7}", word) for word in reading.operands):
        raise Unproven("it may print without end")


def _sleep(reading: ParsedArguments) -> None:
    if not all(re.fullmatch(r"[0-9.]{1,3}[sm]?", word) for word in reading.operands):
        raise Unproven("it waits for very long")


def _top(reading: ParsedArguments) -> None:
    if not {"b", "l"} & _names(reading):
        raise Unproven("it needs a terminal")


def _gzip(reading: ParsedArguments) -> None:
    given = _names(reading)
    if not {"c", "l", "t", "stdout", "to-stdout", "list", "test", "help", "version"} & given:
        raise Unproven("it would write files")
    if {"d", "decompress"} & given and not {"c", "stdout", "to-stdout"} & given:
        raise Unproven("of several modes the last counts: it may write files")


def _unzip(reading: ParsedArguments) -> None:
    if not {"l", "v", "Z", "t", "p", "c"} & _names(reading):
        raise Unproven("it would write files")


def _man(reading: ParsedArguments) -> None:
    if any(not re.fullmatch(r"[A-Za-z0-9_.+:-]+|\[", word) or ".." in word for word in reading.operands):
        raise Unproven("man of a file may run what is in it")


_SECRET_WORD = re.compile(
    r"auth|token|secret|passw|credential|api[-_]?key|private|(^|_)(key|pwd|pass)($|_)", re.IGNORECASE
)


def _no_secrets(reading: ParsedArguments) -> None:
    if any(_SECRET_WORD.search(word) for word in (*reading.operands, *(v or "" for _, v in reading.options))):
        raise Unproven("it asks for what is named like a secret")


def _npm_view(reading: ParsedArguments) -> None:
    _no_secrets(reading)
    if not all(re.fullmatch(r"(@[\w.-]+/)?[\w.-]+(@[\w.^~<>=*-]+)?", word) for word in reading.operands):
        raise Unproven("it may fetch from anywhere")


def _kubectl(reading: ParsedArguments) -> None:
    if any(re.search(r"(^|[,/])secrets?($|[,/.])", word, re.IGNORECASE) for word in reading.operands):
        raise Unproven("it would show secrets of the cluster")
    if any("-file" in (value or "") for _, value in reading.options):
        raise Unproven("it would print another file")
    if "dump" in reading.operands:
        raise Unproven("it would show all of the cluster")


def _compose_config(reading: ParsedArguments) -> None:
    if not {"q", "quiet", "services", "volumes", "images", "profiles"} & _names(reading):
        raise Unproven("it prints what .env and others hold")


def _docker_inspect(reading: ParsedArguments) -> None:
    if any("env" in (value or "").lower() for name, value in reading.options if name in ("f", "format")):
        raise Unproven("it would show variables, which may hold secrets")


def _go_env(reading: ParsedArguments) -> None:
    telling = {"GOPROXY", "GOAUTH", "GOFLAGS", "GOSUMDB", "GONOPROXY", "GOPRIVATE", "GOENV"}
    if not telling.isdisjoint(reading.operands):
        raise Unproven("it prints settings that may hold credentials")


def _client(reading: ParsedArguments) -> None:
    if "client" not in _names(reading):
        raise Unproven("it asks the cluster")


def _go_list(reading: ParsedArguments) -> None:
    if any("@" in word for word in reading.operands):
        raise Unproven("it may fetch from anywhere")


def _cloc(reading: ParsedArguments) -> None:
    if any(name == "vcs" and value not in ("git", "svn", "auto") for name, value in reading.options):
        raise Unproven("--vcs takes a command to run")


def _brew(reading: ParsedArguments) -> None:
    if any(word.startswith(("/", ".")) or word.endswith(".rb") for word in reading.operands):
        raise Unproven("a formula in a file is run")


def _no_files(reading: ParsedArguments) -> None:
    if any("/" in word for word in reading.operands):
        raise Unproven("it would read another file")


def _openssl(reading: ParsedArguments) -> None:
    if any(":" in path for path, _ in reading.paths):
        raise Unproven("openssl takes a name with a colon for an address")


def _recursive(reading: ParsedArguments) -> None:
    reading.paths = [(path, True) for path, _ in reading.paths]  # all below it: as if its content was read


def _rpm(reading: ParsedArguments) -> None:
    if not {"q", "query", "version"} & _names(reading):
        raise Unproven("only rpm's questions are known")


def _getent(reading: ParsedArguments) -> None:
    if any("shadow" in word for word in reading.operands):
        raise Unproven("it shows the hashes of passwords")
    if any(re.match("a?hosts|networks", word) for word in reading.operands[:1]):
        raise Unproven("it asks another machine for a name")


def _numeric(reading: ParsedArguments) -> None:
    """Without -n it looks up names for the addresses it shows."""
    if not {"n", "numeric"} & _names(reading):
        raise Unproven("it asks another machine for names")


def _lsof(reading: ParsedArguments) -> None:
    if "i" in _names(reading) or not reading.options:
        _numeric(reading)


def _plain_values(reading: ParsedArguments) -> None:
    """For scripts that split what they are given, and make commands of it."""
    words = (*reading.operands[1:], *(value or "" for _, value in reading.options))
    if not all(re.fullmatch(r"[\w./@%+=:,-]*", word) and not word.startswith("-") for word in words):
        raise Unproven("it is a script, which may split such a word")


def _service(reading: ParsedArguments) -> None:
    if any(not re.fullmatch(r"[A-Za-z0-9][\w.@-]*", word) for word in reading.operands):
        raise Unproven("a service is a plain name")
    if reading.operands[1:] != ["status"] and (reading.operands or not reading.options):
        raise Unproven("only a service's status is known to only read")


def _status(reading: ParsedArguments) -> None:
    _first(reading, "status", none=True)


def _apt_cache(reading: ParsedArguments) -> None:
    _first(reading, *"show search policy depends rdepends showpkg pkgnames madison stats".split())


def _tput(reading: ParsedArguments) -> None:
    _first(reading, *"cols lines colors longname size".split())


def _systemctl(reading: ParsedArguments) -> None:
    asks = """
        status list-units list-unit-files list-timers list-sockets list-dependencies list-jobs is-active is-enabled
        is-failed is-system-running show cat get-default
    """
    _first(reading, *asks.split(), none=True)


_FURTHER = (
    _ls, _seq, _sleep, _sed, _awk, _jq, _yq, _date, _pretty, _git_listing, _git_remote, _git_config, _git_apply, _dry,
    _offline, _tee, _needs_p, _fuser, _to_stdout, _reflog, _pager, _top, _gzip, _unzip, _man, _recursive, _rpm, _getent,
    _kubectl, _npm_view, _compose_config, _docker_inspect, _go_env, _client, _numeric, _plain_values, _lsof, _go_list,
    _cloc, _brew, _no_secrets, _no_files, _openssl, _service, _status, _apt_cache, _tput, _systemctl,
)  # fmt: skip
# By the names that the tables call them by: `check="git-config"`.
FURTHER: dict[str, Callable[[ParsedArguments], None]] = {
    each.__name__.strip("_").replace("_", "-"): each for each in _FURTHER
}
