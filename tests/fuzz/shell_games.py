"""Games with the shell's own state: variables, directory, options, traps, its end."""

import re

from tests.fuzz.pieces import Draw
from tests.fuzz.steps import Game, Step

CLOSED = ("terminal closed",)
ODD_NAMES = ["a b", "semi;colon", "dol$lar", "new\nline", "qu'ote", 'dou"ble', "-dash", "żółć", "back\\slash", "*star"]


def last_code(draw: Draw) -> Game:
    code = draw.code()
    first = f"sh -c 'exit {code}'" if draw.fish else f"(exit {code})"
    ask = "echo $status" if draw.fish else "echo $?"
    return Game("last code", (Step(text=first, code=code), Step(text=ask, output=lambda model: f"{model.last}\n")))


def variables(draw: Draw) -> Game:
    name, value = f"V{draw.tag()}", f"{draw.tag()} and more"
    word = draw.quote(value)
    set_it = f"set -g {name} {word}" if draw.fish else f"{name}={word}"
    return Game(
        "variable",
        (
            Step(text=set_it, sets={name: value}),
            Step(text=f'echo "${name}"', output=lambda model: model.variables.get(name, "") + "\n"),
        ),
    )


def directory(draw: Draw) -> Game:
    name = draw.rng.choice(ODD_NAMES)
    word, tag = draw.quote(f"./{name}"), draw.tag()
    back = draw.rng.choice(["cd ..", "cd -", 'cd "$OLDPWD"'] if not draw.fish else ["cd ..", "cd -"])
    there = draw.rng.choice(
        [
            f"mkdir -p {word} && cd {word}",
            f"mkdir -p {word}; cd {word}; false",
            f"mkdir -p {word}; eval cd {draw.quote(word)}",
        ]
    )
    code = 1 if there.endswith("false") else 0
    return Game(
        "directory",
        (
            Step(text=there, code=code, cwd=name),
            Step(text=f"echo {tag}", output=f"{tag}\n", cwd=name),
            Step(text=back, output=None, cwd="."),
        ),
    )


def pushed(draw: Draw) -> Game:
    name = draw.tag()
    return Game(
        "pushd",
        (
            Step(text=f"mkdir {name}; pushd {name} >/dev/null", cwd=name),
            Step(text="popd >/dev/null", cwd="."),
        ),
    )


def removed(draw: Draw) -> Game:
    """The directory is gone under the shell: the next command runs in the nearest that is left."""
    name, tag = draw.tag(), draw.tag()
    return Game(
        "removed directory",
        (
            Step(text=f"mkdir {name}; cd {name}; rmdir ../{name}", cwd=None, output=None, code=None, keeps_last=False),
            Step(text=f"echo {tag}", output=f"{tag}\n", cwd="."),
        ),
    )


def leaves(draw: Draw) -> Game:
    code, tag = draw.code(), draw.tag()
    farewell = re.compile(rf"{tag}\n(exit\n|zsh: warning: .*\n)?")
    text = draw.rng.choice([f"echo {tag}; exit {code}", f"echo {tag}; exec sh -c 'exit {code}'"])
    if draw.shell == "zsh":
        text = f"setopt no_check_jobs; {text}"  # or it stays, and tells of its jobs
    if draw.fish:
        text = f"for j in (jobs -p | string match -r '^\\d+$'); disown $j; end; {text}"
    return Game("exit", (Step(text=text, output=farewell, code=code, reasons=CLOSED, dies=True),))


def killed_shell(draw: Draw) -> Game:
    tag = draw.tag()
    pid = "$fish_pid" if draw.fish else "$$"
    name, code = draw.rng.choice([("KILL", 137), ("KILL", 137), ("SEGV", 139)])
    text = f"echo {tag}; kill -{name} {pid}; sleep 5"
    return Game(
        "kill the shell",
        (Step(text=text, output=re.compile(f"{tag}\n.*", re.DOTALL), code=code, reasons=CLOSED, dies=True),),
    )


def error_exit(draw: Draw) -> Game | None:
    if draw.fish:
        return None
    code, tag = draw.rng.randrange(1, 120), draw.tag()
    return Game(
        "set -e",
        (
            Step(text="set -e"),
            Step(text=f"echo {tag}; ! true; false || true", output=f"{tag}\n"),
            Step(
                text=f"echo {tag}b; (exit {code}); echo never",
                output=re.compile(f"{tag}b\n(exit\n)?"),
                code=code,
                reasons=CLOSED,
                dies=True,
            ),
        ),
    )


def unset_variable(draw: Draw) -> Game | None:
    if draw.fish:
        return None
    tag = draw.tag()
    return Game(
        "set -u",
        (
            Step(text="set -u"),
            Step(
                text=f'echo {tag}; echo "$no{tag}"', output=re.compile(f"{tag}\n.*no{tag}.*", re.DOTALL), code=(1, 127)
            ),
            Step(text=f"echo {tag}c", output=f"{tag}c\n"),
            Step(text="set +u"),
        ),
    )


def traced(draw: Draw) -> Game | None:
    if draw.fish:
        return None
    tag = draw.tag()
    return Game(
        "set -x",
        (
            Step(text="set -x", output=None),
            Step(text=f"echo {tag}; (exit 6)", output=re.compile(f"(.*\n)*{tag}\n(.*\n)*"), code=6),
            Step(text="set +x", output=None),
            Step(text=f"echo {tag}b", output=f"{tag}b\n"),
        ),
    )


def pipe_failure(draw: Draw) -> Game | None:
    if draw.fish:
        return None
    return Game(
        "pipefail",
        (Step(text="set -o pipefail"), Step(text="(exit 3) | true", code=3), Step(text="set +o pipefail")),
    )


def traps(draw: Draw) -> Game | None:
    if draw.fish:
        return None
    tag, name = draw.tag(), draw.rng.choice(["DEBUG", "ERR", "INT", "TERM", "CHLD", "USR1", "WINCH"])
    if draw.shell == "zsh":
        name = "ZERR" if name == "ERR" else name
    word = draw.rng.choice([":", "''", "true"])
    return Game(
        f"trap {name}",
        (
            Step(text=f"trap {word} {name}"),
            Step(text=f"echo {tag}; (exit 3)", output=f"{tag}\n", code=3),
            Step(text=f"trap - {name}"),
        ),
    )


def own_signal(draw: Draw) -> Game | None:
    if draw.fish:
        return None
    tag = draw.tag()
    return Game(
        "signal to itself",
        (Step(text=f"trap 'echo {tag}' USR1; kill -USR1 $$; :; trap - USR1", output=f"{tag}\n"),),
    )


def syntax_error(draw: Draw) -> Game:
    tag = draw.tag()
    texts = ['echo "abc', "echo 'abc", "if true", "for x in", "echo a |", "( echo", "case x in", "echo ) a", "echo $("]
    if draw.fish:
        texts = ['echo "abc', "echo 'abc", "if true", "for x in", "( echo", "echo )", "end", "echo (", "begin"]
    text = draw.rng.choice(texts)
    return Game(
        "syntax error",
        (
            Step(text=text, output=None, code=None, keeps_last=False),
            Step(text=f"echo {tag}", output=f"{tag}\n"),
        ),
    )


def not_found(draw: Draw) -> Game:
    name = f"no-such-{draw.tag()}"
    return Game("not found", (Step(text=name, output=re.compile(f".*{name}.*", re.DOTALL), code=127),))


def moved(draw: Draw) -> Game:
    """The caller says where: the terminal moves first, and no word of that is seen."""
    name, tag = draw.rng.choice(ODD_NAMES), draw.tag()
    return Game(
        "moved",
        (
            Step(text=f"mkdir -p {draw.quote('./' + name)}"),
            Step(text=f"echo {tag}; sh -c 'exit 3'", at=name, cwd=name, output=f"{tag}\n", code=3),
            Step(text=f"echo {tag}b", at=".", cwd=".", output=f"{tag}b\n"),
        ),
    )
