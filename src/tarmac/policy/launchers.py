"""What "always allow" may store. A program that runs programs is never allowed by its first word.

refusal(words)          → why this prefix can't be granted, or ""
line_refusal(line)      → the same of a whole line
fits(prefix, words)     → whether words begin with it, and no option after it makes another thing of it
suggest(line, parts, …) → what the person could be offered: the exact line, and a prefix for each part

The lists are below.
"""

import re
from collections.abc import Sequence
from functools import cache

from tarmac.policy.programs.rules.table import names
from tarmac.policy.verdict import Part, Risk, SuggestedGrant
from tarmac.policy.visible import is_plain

LONGEST_LINE = 4096
_VERSION = re.compile(r"[-\d.]*\d$")  # python3.11, pip3, lua5.4
_TARMAC = re.compile(r"(?:^|[\s;&|(`/])tarmac(?=\s|$)")
_WRITES_OR_RUNS = re.compile(
    r"-o|-?-out(put)?([-_]?(dir|file|path|directory|document))?|-?-exec(-\w+)?|--eval|--command|--shell|--pager|--editor"
    r"|--config([-_](file|path|dir))?|--plugins?|--require|--load(-\w+)?|--init-\w+|--rcfile|--log-?file|--save(-\w+)?"
    r"|--report-?file|--(cpu|mem)profile|--upload-pack|--receive-pack|--sandbox|--prefix|--root|--directory|--cwd"
)
# `https://…`, `git@host:…`, `git+ssh://…`
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://|[\w.-]+@[\w.-]+:|[\w.-]+\.[a-z]{2,}:(?!\d+$)")
_BUILDING = frozenset(["gcc", "g++", "cc", "c++", "clang", "clang++", "go", "ld", "rustc"])
_SCOPED = frozenset(["npm", "pnpm", "yarn", "bun"])
_SCOPED_PACKAGE = re.compile(r"@[a-z0-9~][\w.-]*/[\w.-]+(@[\w.^~<>=*-]+)?")
_MAKE = ("make", "gmake", "ninja")
_SINGLE = frozenset(["go", "gcc", "g++", "cc", "c++", "clang", "clang++", "ld", "javac"])  # -long with one dash
_MAKE_WORD = re.compile(r"-[jskBnr]\d*|[A-Za-z][\w./:-]*", re.ASCII)
_PLAIN_WORD = re.compile(r"[A-Za-z][\w:.-]*", re.ASCII)


@cache
def _all(text: str) -> frozenset[str]:
    return frozenset(names(text))


@cache
def _turning() -> dict[str, tuple[str, ...]]:
    """By name: the options that make another thing of a program."""
    return {name: tuple(options.split()) for names, options in TURNING.items() for name in names.split()}


def refusal(words: Sequence[str]) -> str:
    """Why all that begins with `words` can't be allowed; empty when it can."""
    if not words or not words[0]:
        return "there is no first word"
    if any(not is_plain(word) for word in words):
        return "it has characters that can't be seen"
    if "=" in words[0]:
        return "a variable in front can change what any program does"
    name = words[0].rpartition("/")[2]
    if name not in _all(WHOLE_LINE) and name not in _all(SECOND_WORD):
        name = _VERSION.sub("", name) or name
    pair = " ".join((name, *words[1:2]))
    if name in _all(NEVER):
        return f"`{name}` itself can't be allowed for good"
    if name in _all(WHOLE_LINE) or pair in _all(PAIR_WHOLE_LINE):
        shown = pair if pair in _all(PAIR_WHOLE_LINE) else name
        return f"`{shown}` can run any program: only a whole line can be allowed"
    if name in _all(INTERPRETERS):
        return _script(name, words)
    if name in _all(SECOND_WORD):
        if len(words) < 2 or not _PLAIN_WORD.fullmatch(words[1]):
            return f"`{name}` alone can do anything: say which of its commands"
        if pair in _all(THEN_A_PROGRAM):
            return refusal(words[2:]) if len(words) > 2 else f"`{pair}` can run any program: say which"
        if pair in _all(THIRD_WORD) and (len(words) < 3 or not _PLAIN_WORD.fullmatch(words[2])):
            return f"`{pair}` alone can do too much: say what it is to do"
    return ""


def line_refusal(line: str) -> str:
    """Why exactly this line can't be allowed for good; empty when it can."""
    if not line.strip():
        return "there is no command"
    if len(line) > LONGEST_LINE:
        return f"it is longer than {LONGEST_LINE:,} characters"
    if not is_plain(line, lines=True):
        return "it has characters that can't be seen"
    return "`tarmac` itself can't be allowed for good" if _TARMAC.search(line) else ""


def fits(prefix: Sequence[str], words: Sequence[str]) -> bool:
    """Whether `words` begin with `prefix`, word by word, and mean no other thing by what follows."""
    if not prefix or tuple(words[: len(prefix)]) != tuple(prefix):
        return False
    if prefix[0].rpartition("/")[2] in _MAKE:  # `make test -f /tmp/other`, `make test SHELL=…`
        return all(_MAKE_WORD.fullmatch(word) for word in words[len(prefix) :])
    further = words[len(prefix) :]
    name = _name(prefix[0])
    if any(_elsewhere(word, name) for word in further):
        return False
    turning = [option for word in prefix for option in _turning().get(_name(word), ())]  # also of `uv run pytest`
    single = not _SINGLE.isdisjoint(map(_name, prefix))
    return not any(_is_option(word, option, single=single) for word in further for option in turning)


def _elsewhere(word: str, name: str) -> bool:
    """A word that no prefix covers: words from a file, an option that writes or runs, another machine."""
    if word.startswith("-"):
        if name in _BUILDING and word.startswith("-o"):
            return False  # to write is what they are for
        return _WRITES_OR_RUNS.fullmatch(word.partition("=")[0]) is not None
    if word.startswith("@"):
        return not (name in _SCOPED and _SCOPED_PACKAGE.fullmatch(word))
    return _ADDRESS.match(word) is not None


def _name(word: str) -> str:
    name = word.rpartition("/")[2]
    return _VERSION.sub("", name) or name


def _is_option(word: str, option: str, *, single: bool) -> bool:
    """`option` itself, with a value, attached or bundled, shortened, or with one dash more."""
    given = word.partition("=")[0]
    if option == "@":
        return word.startswith("@")
    if len(option) == 2 and not single:
        return word.startswith(option) or (re.fullmatch(r"-[A-Za-z]+", given) is not None and option[1] in given)
    if len(option) == 2:
        return given == option or (option == "-B" and word.startswith(option))
    if given in (option, f"-{option}"):
        return True
    return option.startswith("--") and len(given) > 3 and option.startswith(given)


def _script(name: str, words: Sequence[str]) -> str:
    match words[1:]:
        case []:
            return f"`{name}` alone runs anything: name the script"
        case ["-m", module, *_] if name in ("python", "pypy") and module not in _all(MODULES_WHOLE_LINE):
            return "" if _PLAIN_WORD.fullmatch(module) else "that is no module"
        case [first, *_] if first.startswith("-") or not first:
            return f"`{name} {first}` can run anything: only a whole line can be allowed"
    return ""


def suggest(line: str, parts: Sequence[Part], *, risk: Risk, by_prefix: bool = True) -> tuple[SuggestedGrant, ...]:
    """What "always allow" could store, the narrowest first.

    Nothing for a critical line, for one with characters that can't be seen, or for one whose words are known only when
    it runs. A prefix is offered for parts up to medium risk that are not allowed anyway, if one would cover them.
    """
    if risk == "critical" or not parts or line_refusal(line):
        return ()
    if any(part.words is None or part.risk == "critical" for part in parts):
        return ()
    offered = [SuggestedGrant("line", line)]
    asked = [part for part in parts if part.decision == "ask"]
    if by_prefix and len(asked) == 1 and asked[0].risk in ("low", "medium") and asked[0].words:
        prefix = _prefix(asked[0].words)
        # What a prefix would not cover is not offered: a file written, a variable in front.
        covers = bool(prefix) and fits(prefix, asked[0].words)
        if covers and asked[0].text.startswith(prefix[0]) and not set("<>") & set(asked[0].text):
            offered.append(SuggestedGrant("prefix", " ".join(prefix), prefix))
    return tuple(offered)


def _prefix(words: tuple[str, ...]) -> tuple[str, ...]:
    """The shortest prefix fit to be granted that says what is done; none when there is no good one."""
    name = words[0].rpartition("/")[2]
    if name in _all(NO_PREFIX_SUGGESTED) or " ".join((name, *words[1:2])) in _all(NO_PREFIX_SUGGESTED):
        return ()
    if " ".join((name, *words[1:2])) in _all(THEN_A_PROGRAM):  # uv run
        inner = _prefix(words[2:]) if len(words) > 2 else ()
        return (*words[:2], *inner) if inner else ()
    alone = "/" in words[0] or _name(name) in _all(BY_NAME)
    for length in range(1 if alone else 2, min(len(words), 4) + 1):
        prefix = words[:length]
        if any(not word or set(word) & set(" \t'\"\\$`*?[]{}~;&|<>()!#") for word in prefix):
            return ()  # it would have to be quoted to be read
        if not refusal(prefix):
            said = alone or _name(name) in _all(INTERPRETERS) or _PLAIN_WORD.fullmatch(prefix[1])
            return prefix if said else ()
    return ()


# Nothing at all: whoever may run it could allow themselves the rest.
NEVER = "tarmac"

# Only a whole line: any further word may be a program, a script, or an option that names one.
WHOLE_LINE = (
    # shells' own words
    "eval|exec|source|.|command|builtin|trap|alias|enable|coproc|"
    # they take a command
    """
        env|xargs|sudo|doas|su|runuser|pkexec|setpriv|nice|ionice|chrt|nohup|setsid|stdbuf|timeout|time|watch|
        parallel|entr|flock|chroot|unshare|nsenter|bwrap|firejail|script|expect|unbuffer|strace|ltrace|gdb|lldb|
        valgrind|perf|taskset|numactl|xvfb-run|dbus-run-session|systemd-run|at|batch|crontab|busybox|toybox|direnv|
        torsocks|proxychains|caffeinate|start-stop-daemon|screen|tmux|zellij|dtach|nvim|vim|vi|ex|ed|emacs|nano|
    """
    # they take code, or an option that names a program
    """
        find|fd|fdfind|awk|gawk|mawk|nawk|sed|perl|ruby|lua|luajit|tclsh|osascript|php|m4|bc|dc|jshell|ghci|irb|
        sqlite3|psql|mysql|tar|bsdtar|cpio|rsync|zip|less|more|man|rg|sort|split|tcpdump|nmap|openssl|ssh|scp|sftp|
        mosh|telnet|nc|ncat|socat|rsh|ansible|ansible-playbook|salt|fab|cmake|ctest|npx|bunx|uvx|pnpx|claude|codex|
        gemini|aider|goose|opencode|cursor-agent|code|xdg-open|open|start|explorer|cmd|powershell|pwsh|wscript|
        cscript|rundll32|wsl
    """
)

# A program that has commands of its own: the one that is meant must be named, before any option.
SECOND_WORD = """
    make|gmake|ninja|git|hg|svn|jj|gh|glab|npm|yarn|pnpm|bun|deno|docker|podman|nerdctl|kubectl|oc|helm|cargo|
    rustup|go|pip|pip3|pipx|uv|poetry|pdm|hatch|rye|conda|mamba|gem|bundle|rake|composer|mvn|gradle|gradlew|mvnw|
    dotnet|swift|mix|rebar3|stack|cabal|apt|apt-get|dpkg|dnf|yum|rpm|pacman|apk|zypper|snap|flatpak|brew|port|nix|
    systemctl|service|launchctl|journalctl|aws|gcloud|gsutil|az|doctl|heroku|flyctl|vercel|netlify|wrangler|
    terraform|tofu|pulumi|vagrant|just|task|invoke|nox|tox|asdf|mise|nvm|pyenv|rbenv|bazel|buck2|earthly|dagger
"""

# … and these commands of theirs take one more word …
THIRD_WORD = """
    npm run|npm run-script|yarn run|pnpm run|bun run|deno task|composer run|composer run-script|docker compose|
    docker container|docker image|docker volume|docker network|docker system|docker buildx|podman compose|git stash|
    git remote|git branch|git tag|git worktree|git config|git submodule|gh pr|gh issue|gh repo|gh run|gh release|
    gh workflow|uv pip|cargo xtask|mise run|nix flake|aws s3|gcloud compute|terraform state|terraform workspace|
    conda env|go mod|go work|go tool
"""

# … or a program, which must itself be fit to be granted …
THEN_A_PROGRAM = "uv run|poetry run|pdm run|hatch run|rye run|pipx run|bundle exec|mise exec|conda run"

# … or are good for a whole line only.
PAIR_WHOLE_LINE = """
    git config|git filter-branch|git difftool|git mergetool|git bisect|git rebase|git submodule|git daemon|
    git credential|git hook|git clone|git fetch|git pull|git ls-remote|git grep|git archive|npm exec|npm x|
    npm explore|npm create|npm init|yarn dlx|yarn exec|yarn create|pnpm dlx|pnpm exec|pnpm create|bun x|bun create|
    deno run|deno eval|docker run|docker exec|docker build|docker cp|podman run|podman exec|podman build|
    nerdctl run|nerdctl exec|kubectl exec|kubectl run|kubectl debug|kubectl cp|oc exec|oc rsh|uv tool|gh api|
    gh alias|gh extension|gh codespace|nix run|nix shell|nix develop|gcloud ssh|go generate|cargo install|
    pip config|npm config
"""

# They run a script: the script must be named; never the code itself.
INTERPRETERS = """
    bash|sh|dash|ash|zsh|fish|ksh|mksh|csh|tcsh|rbash|nu|xonsh|elvish|python|pypy|ipython|node|nodejs|ts-node|tsx|
    java|Rscript|R|julia|groovy|scala|kotlin
"""

# `python -m` with one of these is no better than `python -c`.
MODULES_WHOLE_LINE = "pdb|runpy|timeit|code|cProfile|profile|trace|pip|venv|http.server|IPython"

# What "always allow" suggests only as a whole line: each call of it is another thing …
NO_PREFIX_SUGGESTED = (
    """
        rm|rmdir|mv|cp|ln|dd|chmod|chown|chgrp|kill|pkill|killall|curl|wget|tee|truncate|shred|install|mount|umount|
        touch|mkdir|unzip|gunzip|patch|useradd|usermod|passwd|
    """
    # … or it is asked about for what it reads: without, it would be allowed anyway
    """
        cat|head|tail|ls|dir|cd|pushd|popd|pwd|echo|printf|grep|egrep|fgrep|wc|uniq|cut|tr|diff|cmp|comm|paste|join|
        column|nl|od|xxd|hexdump|strings|file|stat|du|df|tree|date|test|[|true|false|which|type|whereis|readlink|
        realpath|basename|dirname|jq|yq|base64|md5sum|sha1sum|sha256sum|set|export|unset|read|declare|typeset|local|
        umask|ulimit|wait|jobs|fg|bg|return|exit|printenv|ps|id|whoami|uname|env|git diff|git log|git show|
        git status|git blame|git cat-file
    """
)

# Suggested by their name alone: what their options can do is known, below. Of all others two words are suggested.
BY_NAME = """
    pytest|py.test|mypy|pyright|black|isort|flake8|pylint|tsc|eslint|prettier|jest|vitest|mocha|rspec|rubocop|
    phpunit|stylelint|yamllint|markdownlint|hadolint|golangci-lint|gofmt|rustfmt|clang-format|pre-commit
"""

# Options that make another thing of a program: they name a program, a plugin, a configuration that runs code, or
# another project. No prefix covers them, granted or written. `-x` of more than a letter
# means `--x` as well.
TURNING = {
    "go": "-exec -toolexec -vettool -overlay -modfile -C -gccgoflags -asmflags -pkgdir",
    "pytest py.test": "-p -c -o --rootdir --confcutdir --override-ini --pdbcls --basetemp --import-mode --config-file",
    "gcc g++ cc c++ clang clang++": "-B -fplugin -wrapper -specs -fuse-ld -Xclang -load @",
    "ld javac": "@ -plugin -processor -processorpath",
    "eslint": "-c -f --config --rulesdir --plugin --parser --format --resolve-plugins-relative-to --output-file -o",
    "prettier": "--config --plugin --plugin-search-dir --find-config-path",
    "stylelint": "--config --config-basedir --custom-syntax --custom-formatter --plugins",
    "jest": """
        -c --config --rootDir --runner --testEnvironment --setupFiles --setupFilesAfterEnv --globalSetup
        --globalTeardown --transform --resolver --reporters --testRunner --projects --env --haste --watchPlugins
        --moduleDirectories
    """,
    "vitest": "-c -r --config --root --globalSetup --reporter --environment --dir",
    "mocha": "-r --require --config --file --package --ui --reporter --import --loader --experimental-loader",
    "webpack vite rollup next": "-c -r --config --require --root --configPlugin --plugin",
    "mypy": "--config-file --python-executable --custom-typeshed-dir --cache-dir --shadow-file",
    "pylint": "--rcfile --init-hook --load-plugins",
    "flake8": "--config --append-config",
    "tsc": "--plugins --outDir --outFile",
    "rspec": "-r -I -O --require --options --default-path",
    "rubocop": "-c -r --config --require --plugin",
    "phpunit": "-c --configuration --bootstrap --extension --printer",
    "npm pnpm yarn": "-C --prefix --script-shell --node-options --userconfig --globalconfig --registry --cwd --dir",
    "bun": "-r --preload --cwd --config",
    "cargo": "-C -Z --config --manifest-path --target-dir",
    "tox": "-c -x --conf --root --workdir --override --installpkg",
    "nox": "-f --noxfile",
    "mvn": "-f -s -gs -t --file --settings --global-settings --toolchains",
    "gradle": """
        -b -c -I -p -g -D -P --build-file --settings-file --init-script --project-dir --gradle-user-home
        --include-build
    """,
    "dotnet": "--property --packages --source --tool-path --configfile --additionalprobingpath",
    "pip uv": """
        -i -f --index-url --extra-index-url --index --default-index --find-links --requirement --config-settings
        --python --target --trusted-host --directory --project
    """,
    "pre-commit": "-c --config",
    "python": "-c",
    "golangci-lint": "-c --config",
}
