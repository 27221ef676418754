"""Peel wrappers: from `sudo -u x timeout 5 bash -c 'rm y'` to the command inside. Data in WRAPPERS.

peel(words) → Peeled(inner words | a script to parse again | nothing that is known) | None when it is no wrapper
"""

import functools
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tarmac.policy.parse.words import Word, word_of
from tarmac.policy.programs.rules.table import Table, WrapperEntry
from tarmac.policy.verdict import Risk

WRAPPERS = {
    "sudo": WrapperEntry(
        value="""
            -u -g -p -C -T -h -R -r -t -U -D --user --group --prompt --close-from --command-timeout --host --chroot
            --role --type --other-user --chdir
        """,
        assigns=True,
        risk="high",
        does="as the administrator",
    ),
    "doas": WrapperEntry(value="-u -C", risk="high", does="as the administrator"),
    "pkexec": WrapperEntry(value="--user", risk="high", does="as the administrator"),
    "su": WrapperEntry(
        value="-s --shell -g -G -w",
        code="-c --command --session-command",
        risk="high",
        does="as another user",
    ),
    "runuser": WrapperEntry(value="-u -g -G -s", code="-c --command", risk="high", does="as another user"),
    "env": WrapperEntry(value="-u --unset -C --chdir", assigns=True, code="-S --split-string", does=""),
    "nice": WrapperEntry(value="-n --adjustment", plain=r"-n?-?[0-9]*"),
    "ionice": WrapperEntry(value="-c -n -p --class --classdata"),
    "chrt": WrapperEntry(skip=1),
    "nohup": WrapperEntry(plain="", left_out=True),
    "setsid": WrapperEntry(),
    "stdbuf": WrapperEntry(value="-i -o -e --input --output --error", plain="-[ioe][0L]"),
    "timeout": WrapperEntry(
        value="-k -s --kill-after --signal",
        skip=1,
        plain=r"-[ks]?[0-9.]*[smhd]?|--preserve-status|--foreground",
        before=r"[0-9.]+[smhd]?",
    ),
    "gtimeout": WrapperEntry(value="-k -s", skip=1),
    "time": WrapperEntry(value="-o -f --output --format"),
    "gtime": WrapperEntry(value="-o -f"),
    "command": WrapperEntry(plain="", left_out=True),
    "builtin": WrapperEntry(),
    "exec": WrapperEntry(value="-a"),
    "catchsegv": WrapperEntry(),
    "faketime": WrapperEntry(skip=1),
    "fakeroot": WrapperEntry(),
    "unbuffer": WrapperEntry(),
    "caffeinate": WrapperEntry(value="-t -w"),
    "taskset": WrapperEntry(value="-p", skip=1),
    "numactl": WrapperEntry(),
    "proxychains": WrapperEntry(value="-f"),
    "proxychains4": WrapperEntry(value="-f"),
    "torsocks": WrapperEntry(),
    "strace": WrapperEntry(value="-o -e -p -s -P -E -u -a"),
    "ltrace": WrapperEntry(value="-o -e -p -s -u"),
    "valgrind": WrapperEntry(),
    "perf": WrapperEntry(skip=1, value="-o -e -F -p"),
    "xvfb-run": WrapperEntry(value="-n -s -w"),
    "dbus-run-session": WrapperEntry(),
    "systemd-run": WrapperEntry(
        value="-u -p --unit --property --slice --on-calendar --on-active --uid",
        risk="high",
        does="as a service that stays",
    ),
    "flock": WrapperEntry(value="-w -E --timeout", code="-c --command", skip=1),
    "chroot": WrapperEntry(value="--userspec --groups", skip=1, risk="high", does="under another root"),
    "unshare": WrapperEntry(value="-R -w -S -G"),
    "nsenter": WrapperEntry(value="-t -S -G", risk="high", does="in the namespaces of another process"),
    "firejail": WrapperEntry(),
    "bwrap": WrapperEntry(risk="medium"),
    "setpriv": WrapperEntry(value="--reuid --regid"),
    "capsh": WrapperEntry(code="-c"),
    "script": WrapperEntry(code="-c --command"),
    "watch": WrapperEntry(value="-n --interval", script=True),
    "entr": WrapperEntry(),
    "xargs": WrapperEntry(
        value="""
            -I -i -n -P -L -d -E -s -a --max-args --max-procs --replace --delimiter --arg-file --max-lines
            --max-chars
        """,
        fed=True,
    ),
    "parallel": WrapperEntry(
        value="-j -a -N -n -S --jobs --arg-file --joblog --delay --retries --sshlogin --colsep",
        script=True,
        fed=True,
    ),
    "rust-parallel": WrapperEntry(value="-j", fed=True),
    "bash": WrapperEntry(value="-o -O --rcfile --init-file", code="-c", shell=True),
    "sh": WrapperEntry(value="-o", code="-c", shell=True),
    "zsh": WrapperEntry(value="-o", code="-c", shell=True),
    "dash": WrapperEntry(value="-o", code="-c", shell=True),
    "ksh": WrapperEntry(value="-o", code="-c", shell=True),
    "mksh": WrapperEntry(code="-c", shell=True),
    "ash": WrapperEntry(code="-c", shell=True),
    "fish": WrapperEntry(code="-c --command -C --init-command", shell=True),
    "rbash": WrapperEntry(code="-c", shell=True),
    "busybox": WrapperEntry(multi=True),
    "toybox": WrapperEntry(multi=True),
    "ssh": WrapperEntry(
        value="-b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w",
        skip=1,
        script=True,
        risk="medium",
        does="on another machine",
        elsewhere=True,
    ),
    "mosh": WrapperEntry(value="--ssh --port -p", skip=1, risk="medium", does="on another machine", elsewhere=True),
    "rsh": WrapperEntry(value="-l", skip=1, script=True, risk="medium", does="on another machine", elsewhere=True),
    "docker exec": WrapperEntry(
        value="-u -w -e --user --workdir --env --env-file --detach-keys",
        skip=1,
        risk="medium",
        does="in a container",
        elsewhere=True,
    ),
    "docker run": WrapperEntry(
        value="""
            -v -e -p -u -w -h -l -m --volume --env --publish --user --workdir --name --network --net --mount
            --entrypoint --hostname --label --env-file --cpus --memory --restart --add-host --device --gpus --pid
            --ipc --platform --tmpfs --ulimit --cap-add --cap-drop --security-opt --volumes-from --link --log-driver
            --pull --shm-size --ip --dns --expose --runtime --userns --cidfile --health-cmd -c -a --attach
        """,
        skip=1,
        risk="medium",
        does="in a new container",
        elsewhere=True,
    ),
    "docker container exec": WrapperEntry(like="docker exec"),
    "docker container run": WrapperEntry(like="docker run"),
    "podman exec": WrapperEntry(like="docker exec"),
    "podman run": WrapperEntry(like="docker run"),
    "docker compose exec": WrapperEntry(
        value="-u -w -e --user --workdir --env --index",
        skip=1,
        risk="medium",
        does="in a container",
        elsewhere=True,
    ),
    "docker compose run": WrapperEntry(
        value="-u -w -e -v -p --user --workdir --env --volume --publish --name --entrypoint",
        skip=1,
        risk="medium",
        does="in a new container",
        elsewhere=True,
    ),
    "docker-compose exec": WrapperEntry(like="docker compose exec"),
    "docker-compose run": WrapperEntry(like="docker compose run"),
    "kubectl exec": WrapperEntry(
        value="-n -c --namespace --container --context --kubeconfig -f --filename",
        skip=1,
        risk="medium",
        does="in the cluster",
        elsewhere=True,
    ),
    "kubectl run": WrapperEntry(
        value="-n --image --namespace --env --labels --restart",
        skip=1,
        risk="medium",
        does="in the cluster",
        elsewhere=True,
    ),
    "lxc exec": WrapperEntry(skip=1, risk="medium", does="in a container", elsewhere=True),
    "multipass exec": WrapperEntry(skip=1, risk="medium", does="in a virtual machine", elsewhere=True),
    "tmux new-session": WrapperEntry(value="-s -n -c -t -x -y -e -F", script=True, risk="medium"),
    "tmux send-keys": WrapperEntry(value="-t -N", script=True, risk="medium"),
    "screen -dm": WrapperEntry(value="-S", risk="medium"),
    "npx": WrapperEntry(
        value="-p --package -w --workspace",
        code="-c --call",
        project="runs a package's program, which may be fetched first",
    ),
    "npm exec": WrapperEntry(
        value="-p --package -w --workspace",
        code="-c --call",
        project="runs a package's program, which may be fetched first",
    ),
    "bunx": WrapperEntry(project="fetches a package and runs it", fetches=True),
    "bun x": WrapperEntry(project="fetches a package and runs it", fetches=True),
    "pnpx": WrapperEntry(project="fetches a package and runs it", fetches=True),
    "pnpm dlx": WrapperEntry(project="fetches a package and runs it", fetches=True),
    "yarn dlx": WrapperEntry(project="fetches a package and runs it", fetches=True),
    "pnpm exec": WrapperEntry(project="runs a program of the project"),
    "yarn exec": WrapperEntry(project="runs a program of the project"),
    "uvx": WrapperEntry(value="--from --with --python -p", project="fetches a package and runs it", fetches=True),
    "uv run": WrapperEntry(
        value="--with --python -p --extra --group --project --package --env-file",
        project="runs a program in the project's environment",
    ),
    "uv tool run": WrapperEntry(value="--from --with --python", project="fetches a package and runs it", fetches=True),
    "pipx run": WrapperEntry(value="--spec --python", project="fetches a package and runs it", fetches=True),
    "poetry run": WrapperEntry(project="runs a program in the project's environment"),
    "pipenv run": WrapperEntry(project="runs a program in the project's environment"),
    "pdm run": WrapperEntry(project="runs a program in the project's environment"),
    "hatch run": WrapperEntry(project="runs a program in the project's environment"),
    "rye run": WrapperEntry(project="runs a program in the project's environment"),
    "conda run": WrapperEntry(value="-n --name -p --prefix", project="runs a program in another environment"),
    "bundle exec": WrapperEntry(project="runs a program in the project's environment"),
    "mise exec": WrapperEntry(project="runs a program of the project"),
    "mise x": WrapperEntry(project="runs a program of the project"),
    "asdf exec": WrapperEntry(project="runs a program of the project"),
    "rbenv exec": WrapperEntry(project="runs a program of the project"),
    "nix run": WrapperEntry(project="fetches a package and runs it", fetches=True),
    "nix-shell": WrapperEntry(
        code="--run --command", value="-p -A -I", project="fetches packages and opens a shell", fetches=True
    ),
    "direnv exec": WrapperEntry(skip=1, project="runs a program in the project's environment"),
    "dotenv": WrapperEntry(value="-e -f", project="runs a program with the variables of a file"),
}


VERSIONED = re.compile(r"^(bash|zsh|fish|ksh|python|pypy|ruby|perl|node|php|lua)[-\d.]*$")


@dataclass(frozen=True, slots=True)
class Wrapper:
    """How one wrapper lays out its arguments."""

    name: str
    value: frozenset[str]
    code: frozenset[str]
    skip: int
    assigns: bool
    script: bool
    shell: bool
    fed: bool  # the rest of the words comes from its input
    multi: bool  # busybox: the next word is the program
    risk: Risk
    does: str
    project: str  # what it runs is code of the project, or fetched
    fetches: bool  # it fetches what it runs
    elsewhere: bool  # what it runs sees other files than those of this machine
    plain: str | None  # its options that a plan may have; None: a plan can't have it at all
    before: str
    left_out: bool


@dataclass(frozen=True, slots=True)
class Peeled:
    """What is inside of a wrapper."""

    wrapper: Wrapper
    words: tuple[Word, ...] = ()  # the command inside
    script: str | None = None  # shell text inside
    hidden: bool = False  # there is something inside, but nobody knows what
    stdin: bool = False  # a shell without a script: it runs what it reads
    file: Word | None = None  # a shell with a script file
    certain: bool = True  # False: an option was not known, so the command may begin elsewhere
    assigns: tuple[str, ...] = ()  # names of variables it sets


@functools.cache
def wrappers() -> Mapping[str, Wrapper]:

    def make(name: str, entry: WrapperEntry) -> Wrapper:
        entry = WRAPPERS[entry["like"]] if "like" in entry else entry
        return Wrapper(
            name=name,
            value=frozenset(entry.get("value", "").split()),
            code=frozenset(entry.get("code", "").split()),
            skip=entry.get("skip", 0),
            assigns=entry.get("assigns", False),
            script=entry.get("script", False),
            shell=entry.get("shell", False),
            fed=entry.get("fed", False),
            multi=entry.get("multi", False),
            risk=entry.get("risk", "low"),
            does=entry.get("does", ""),
            project=entry.get("project", ""),
            fetches=entry.get("fetches", False),
            elsewhere=entry.get("elsewhere", False),
            plain=entry.get("plain"),
            before=entry.get("before", ""),
            left_out=entry.get("left_out", False),
        )

    return Table(WRAPPERS, make)


def program_name(word: Word) -> str | None:
    """The name of a program, without its folder and version: /usr/bin/python3.11 is python."""
    if word.text is None or word.brace or word.home:
        return None
    name = os.path.basename(word.text.lstrip("\\")) or word.text
    match = VERSIONED.match(name)
    return match[1] if match else name


def peel(words: Sequence[Word]) -> Peeled | None:
    """What is inside of the outermost wrapper; None when the command is none."""
    if not words:
        return None
    name = program_name(words[0])
    if name is None:
        return None
    table = wrappers()
    plain = [name, *(w.text if w.text is not None else "\0" for w in words[1:3])]
    for size in (3, 2, 1):
        if len(plain) >= size and (wrapper := table.get(" ".join(plain[:size]))):
            return _inside(wrapper, list(words[size:]))
    return None


def _inside(wrapper: Wrapper, rest: list[Word]) -> Peeled:
    if wrapper.multi:
        return Peeled(wrapper, words=tuple(rest), hidden=not rest)
    certain = True
    assigns: list[str] = []
    while rest:
        word = rest[0]
        text = word.shape
        if text == "--":
            rest.pop(0)
            break
        if wrapper.assigns and (match := re.match(r"[A-Za-z_]\w*(?==)", text)):
            assigns.append(match[0])
            rest.pop(0)
            continue
        if not (text.startswith("-") or (wrapper.shell and text.startswith("+"))) or text == "-":
            break
        rest.pop(0)
        code = _code(wrapper, text, rest)
        if code is not None:
            if wrapper.name == "env":
                return Peeled(
                    wrapper, words=tuple(word_of(each) for each in (code.text or "").split()), hidden=not code.literal
                )
            return Peeled(wrapper, script=code.text if code.literal else None, hidden=not code.literal, certain=certain)
        name, equals, _ = text.partition("=")
        if equals:
            continue
        if name in wrapper.value:
            del rest[:1]
        elif re.fullmatch(r"-\w\w+", name) and name[:2] not in wrapper.value and f"-{name[-1]}" in wrapper.value:
            del rest[:1]  # bundled letters, the last of which takes a value: -iu root
    if wrapper.code and not wrapper.shell:  # su root -c 'x'
        for number, word in enumerate(rest):
            late = rest[number + 1 : number + 4]
            if word.shape.startswith("-") and (code := _code(wrapper, word.shape, late)) is not None:
                return Peeled(wrapper, script=code.text if code.literal else None, hidden=not code.literal)
    if wrapper.shell:
        first = rest[0] if rest else None
        if first is None or first.shape == "-":
            return Peeled(wrapper, stdin=True)
        return Peeled(wrapper, file=first)
    skipped, rest = rest[: wrapper.skip], rest[wrapper.skip :]
    if wrapper.assigns:
        while rest and (match := re.match(r"[A-Za-z_]\w*(?==)", rest[0].shape)):
            assigns.append(match[0])
            rest.pop(0)
    if rest and rest[0].shape == "--":
        rest.pop(0)
    if wrapper.script and rest:
        known = all(word.literal for word in rest)
        return Peeled(
            wrapper, script=" ".join(w.text or "" for w in rest) if known else None, hidden=not known, words=tuple(rest)
        )
    return Peeled(
        wrapper, words=tuple(rest), certain=certain and bool(skipped or not wrapper.skip), assigns=tuple(assigns)
    )


def _code(wrapper: Wrapper, text: str, rest: list[Word]) -> Word | None:
    """The value of an option like `bash -c`; bundled letters (-lc, -ec) too."""
    for option in wrapper.code:
        if text == option or (not option.startswith("--") and option[1:] in text and re.fullmatch(r"-[a-zA-Z]*", text)):
            while wrapper.shell and rest and rest[0].shape.startswith(("-", "+")) and rest[0].shape not in ("-", "--"):
                rest.pop(0)  # bash -c -x 'script'
            if rest and rest[0].shape == "--":
                rest.pop(0)
            return rest.pop(0) if rest else word_of("")
        if text.startswith(option + "=") and option.startswith("--"):
            return word_of(text[len(option) + 1 :])
    return None
