"""Games with time and input: commands that ask, that are cut short, that run on in the background."""

import re

from tests.fuzz.pieces import Draw
from tests.fuzz.steps import Game, Step


def asks_line(draw: Draw) -> Game:
    one, two = draw.tag(), draw.tag()
    text = f'read -P "{one}? " x; echo "got $x"' if draw.fish else f"printf '{one}? '; read -r x; echo \"got $x\""
    return Game(
        "read",
        (Step(text=text, act="answer", typed=(f"{two}\n",), output=re.compile(f".*got {two}\n", re.DOTALL)),),
    )


def asks_program(draw: Draw) -> Game:
    tag = draw.tag()
    text = draw.rng.choice(
        [
            "head -n 1 | sed 's/^/got /'",
            "sh -c 'read x; echo \"got $x\"'",
            "sh -c 'stty -echo; read x; stty echo; echo \"got $x\"'",
        ]
    )
    secret = "-echo" in text
    shown = "got (\\*+|\n)" if secret else f"got {tag}\n"
    return Game(
        "a program asks",
        (Step(text=text, act="answer", typed=(f"{tag}\n",), output=re.compile(f".*{shown}.*", re.DOTALL)),),
    )


def reads_to_the_end(draw: Draw) -> Game:
    one, two = draw.tag(), draw.tag()
    return Game(
        "input to its end",
        (
            Step(
                text="cat -n | wc -l",
                act="answer",
                typed=(f"{one}\n", f"{two}\n", "\x04"),
                output=re.compile(r".*\b2\n", re.DOTALL),
            ),
        ),
    )


def typed_ahead(draw: Draw) -> Game:
    """What a command does not read is not the next command."""
    one, two = draw.tag(), draw.tag()
    text = "sh -c 'read x; echo \"got $x\"'"
    return Game(
        "typed ahead",
        (
            Step(
                text=text,
                act="answer",
                typed=(f"{one}\necho {two}\n",),
                output=re.compile(f".*got {one}\n.*", re.DOTALL),
            ),
            Step(text=f"echo {two}b", output=f"{two}b\n"),
        ),
    )


def nested_shell(draw: Draw) -> Game:
    code, tag = draw.code(), draw.tag()
    text = draw.rng.choice(["bash --norc --noprofile", "sh", "bash --norc --noprofile --noediting"])
    return Game(
        "a shell in the shell",
        (
            Step(
                text=text,
                act="answer",
                typed=(f"echo {tag}\n", f"exit {code}\n"),
                output=re.compile(f".*{tag}.*", re.DOTALL),
                code=code,
            ),
        ),
    )


def interrupted(draw: Draw) -> Game:
    tag = draw.tag()
    loops = "while true; sleep 0.01; end" if draw.fish else "while :; do :; done"
    text = draw.rng.choice(
        [f"echo {tag}; sleep 60", f"sh -c 'echo {tag}; sleep 60'", f"echo {tag}; {loops}", f"echo {tag}; cat"]
    )
    return Game(
        "interrupt",
        (
            Step(
                text=text,
                act="interrupt",
                when=tag,
                output=re.compile(f"{tag}\n.*", re.DOTALL),
                code=130,
                reasons=("interrupted",),
            ),
        ),
    )


def ignores_interrupt(draw: Draw) -> Game:
    tag = draw.tag()
    text = f"sh -c \"trap '' INT; echo {tag}; sleep 60; sleep 60\""
    return Game(
        "ignored interrupt",
        (
            Step(
                text=text,
                act="interrupt",
                when=tag,
                output=re.compile(f"{tag}\n.*", re.DOTALL),
                code=(130, 137, 143),
                reasons=("interrupted",),
            ),
        ),
    )


def timed_out(draw: Draw) -> Game:
    tag = draw.tag()
    act = draw.rng.choice(["time out", "kill", "leave"])
    text = draw.rng.choice(["sleep 60", f"printf {tag}; sleep 60", "sh -c 'sleep 60; sleep 60'", "sleep 60 | cat"])
    return Game(
        "timeout",
        (
            Step(
                text=text,
                act=act,  # type: ignore[arg-type]
                output=re.compile(f"({tag})?.*", re.DOTALL),
                code=(130, 137, 143),
                reasons=("timeout",) if act == "time out" else ("killed",) if act == "kill" else ("interrupted",),
            ),
        ),
    )


def cancelled(draw: Draw) -> Game:
    """Whoever waits for a command goes away at any moment; the next command has the terminal to itself."""
    one, two = draw.tag(), draw.tag()
    text = draw.rng.choice(
        ["sleep 60", f"echo {one}; sleep 60", f"seq -f {one}.%g 20000", f"sh -c 'echo {one}; sleep 60'", "cat", "true"]
    )
    moment = draw.rng.choice(["0", "0.001", "0.003", "0.01", "0.03", "0.1"])
    return Game(
        "cancelled",
        (
            Step(text=text, act="cancel", when=moment, output=None, code=None),
            Step(text=f"echo {two}", output=f"{two}\n"),
        ),
    )


def daemons(draw: Draw) -> Game:
    """They are looked for when the terminal is closed: by then all are gone."""
    tag = draw.tag()
    text = draw.rng.choice(
        [
            "setsid sleep {0} >/dev/null 2>&1 &",
            "nohup sleep {0} >/dev/null 2>&1 &",
            "sh -c 'sleep {0} & sleep {0} &' >/dev/null 2>&1",
            "sh -c '(setsid sh -c \"sleep {0} & sleep {0}\" &) &' >/dev/null 2>&1",
            "sh -c 'trap \"\" HUP TERM INT; sleep {0} & sleep {0}' >/dev/null 2>&1 &",
            "env -i setsid sleep {0} </dev/null >/dev/null 2>&1 &",
        ]
    ).format(f"864{draw.rng.randrange(10, 100)}.{draw.rng.randrange(10**6):06}")
    return Game(
        "daemon",
        (
            Step(text=text, output=None, code=None, keeps_last=False, jobs=True),
            Step(text=f"echo {tag}", output=f"{tag}\n"),
        ),
    )


def background_job(draw: Draw) -> Game:
    last = "$last_pid" if draw.fish else "$!"
    tag = draw.tag()
    return Game(
        "background job",
        (
            Step(text=f"sh -c 'exit 3' & \nwait {last}; echo {tag}", output=f"{tag}\n", jobs=True),
            Step(text=f"echo {tag}b", output=f"{tag}b\n"),
        ),
    )


def stopped(draw: Draw) -> Game | None:
    """A job that stops itself, and goes on when told to. (Of what ends behind `fg`, fish's $status knows nothing.)"""
    if draw.shell == "zsh":  # `fg` has the code of the stop there: see docs/fuzzing.md
        return None
    code = draw.rng.randrange(1, 100)
    return Game(
        "stopped",
        (
            Step(
                text=f"sh -c 'kill -STOP $$; exit {code}'",
                output=None,
                code=None,
                reasons=("stopped",),
                jobs=True,
                keeps_last=False,
            ),
            Step(text="fg", output=None, code=None if draw.fish else code),
        ),
    )


def followed(draw: Draw) -> Game:
    """What a listener sees while it runs is what the result has."""
    tag, count = draw.tag(), draw.rng.randrange(2, 300)
    output = "".join(f"{tag}.{n + 1}\n" for n in range(count))
    return Game("followed", (Step(text=f"seq -f {tag}.%g {count}", act="follow", output=output),))


def resized(draw: Draw) -> Game:
    """The size changes while it prints."""
    tag, count = draw.tag(), draw.rng.randrange(100, 400)
    output = "".join(f"{tag}.{n + 1}\n" for n in range(count))
    return Game("resized", (Step(text=f"seq -f {tag}.%g {count}", act="resize", output=output),))
