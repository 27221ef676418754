"""Games with the terminal: much output, odd output, modes left behind."""

from tests.fuzz.pieces import Draw
from tests.fuzz.steps import Game, Step


def big_output(draw: Draw) -> Game:
    count = draw.rng.choice([600, 5000, 60000])
    text = "".join(f"{n + 1}\n" for n in range(count))
    return Game("big output", (Step(text=f"seq {count}", output=text),))


def long_line(draw: Draw) -> Game:
    size = draw.rng.choice([10_000, 49_000, 300_000])
    return Game("long line", (Step(text=f"head -c {size} /dev/zero | tr '\\0' x", output="x" * size),))


def long_command(draw: Draw) -> Game:
    tag = draw.tag()
    filler = "\n".join(f": {draw.quote('y' * 70)}" for _ in range(draw.rng.choice([100, 3000])))
    return Game("long command", (Step(text=f"{filler}\necho {tag}", output=f"{tag}\n"),))


def binary(draw: Draw) -> Game:
    size = draw.rng.choice([1, 100, 5000, 100_000])
    text = draw.rng.choice([f"head -c {size} /dev/urandom", f"cat /bin/ls | head -c {size}"])
    tag = draw.tag()
    return Game(
        "binary",
        (Step(text=text, output=None), Step(text=f"echo {tag}", output=f"{tag}\n")),
    )


def half_sequence(draw: Draw) -> Game:
    half, code = (
        draw.rng.choice([r"\033]633;D;", r"\033]", r"\033", r"\033[", r"\033P", r"\033]633;D;@0000", r"\303"]),
        draw.code(),
    )
    end = f"sh -c 'exit {code}'" if draw.fish else f"(exit {code})"
    tag = draw.tag()
    return Game(
        "half a sequence",
        (Step(text=f"printf '{half}'; {end}", output=None, code=code), Step(text=f"echo {tag}", output=f"{tag}\n")),
    )


def screen_games(draw: Draw) -> Game:
    tag = draw.tag()
    text = draw.rng.choice(
        [
            r"printf '\033[?1049h\033[H\033[2J'",
            r"printf '\033c'",
            r"printf '\033[3J\033[H'",
            r"printf '\016\033(0'",
            r"printf '\033[?2004h\033[?1h\033='",
        ]
    )
    return Game("screen", (Step(text=text, output=None), Step(text=f"echo {tag}", output=f"{tag}\n")))


def modes_left(draw: Draw) -> Game:
    tag = draw.tag()
    text = draw.rng.choice(
        [
            "stty -echo",
            "stty raw",
            "stty -icanon",
            "stty -isig",
            "stty -opost",
            "stty eof x",
            "stty intr a",
            "stty cols 20",
        ]
    )
    return Game(
        "stty", (Step(text=text), Step(text=f"echo {tag}", output=f"{tag}\n"), Step(text="stty sane; stty cols 120"))
    )
