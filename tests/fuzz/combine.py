"""Bigger pieces out of smaller ones: lists, groups, subshells, functions, loops, pipelines, substitutions, traps.

Each combination knows its result from those of its parts, as the shell's own grammar has it.
"""

from collections.abc import Callable

from tests.fuzz.pieces import Draw, Piece

MOST_OUTPUT = 8000  # characters, so that results hold all of it
MOST_LINES = 200


def any_piece(draw: Draw, depth: int) -> Piece:
    """A random piece, at most so deep."""
    if depth <= 0 or draw.rng.random() < 0.25:
        return draw.atom()
    while True:
        piece = draw.rng.choice(COMBINATIONS)(draw, depth)
        if piece is not None and len(piece.output) <= MOST_OUTPUT and piece.output.count("\n") <= MOST_LINES:
            return piece


def then(draw: Draw, one: Piece, two: Piece) -> Piece:
    """One after the other; the code is the second's."""
    between = "\n" if one.ends_line else draw.rng.choice(["; ", "\n", " ;"])
    text, output = f"{one.text}{between}{two.text}", one.output + two.output
    return Piece(text, output, two.code, ends_line=two.ends_line, literal=one.literal and two.literal)


def _closed(piece: Piece, draw: Draw) -> str:
    """Its text with an end that a closing word may follow."""
    return piece.text + ("\n" if piece.ends_line else draw.rng.choice(["; ", "\n"]))


def sequence(draw: Draw, depth: int) -> Piece:
    piece = any_piece(draw, depth - 1)
    for _ in range(draw.rng.randrange(1, 4)):
        piece = then(draw, piece, any_piece(draw, depth - 1))
    return piece


def and_or(draw: Draw, depth: int) -> Piece:
    one, two = group(draw, depth), group(draw, depth)
    word = draw.rng.choice(["&&", "||"])
    ran = (one.code == 0) == (word == "&&")
    output, code = (one.output + two.output, two.code) if ran else (one.output, one.code)
    return Piece(f"{one.text} {word} {two.text}", output, code, literal=one.literal and two.literal)


def group(draw: Draw, depth: int) -> Piece:
    inner = any_piece(draw, depth - 1)
    text = f"begin; {_closed(inner, draw)}end" if draw.fish else f"{{ {_closed(inner, draw)}}}"
    return Piece(text, inner.output, inner.code, literal=inner.literal)


def subshell(draw: Draw, depth: int) -> Piece | None:
    if draw.fish:
        return None
    inner = any_piece(draw, depth - 1)
    text = f"( {_closed(inner, draw)} )"
    return Piece(text, inner.output, inner.code, literal=inner.literal)


def function(draw: Draw, depth: int) -> Piece:
    inner, name = any_piece(draw, depth - 1), f"f{draw.tag()}"
    if draw.fish:
        text = f"function {name}\n{_closed(inner, draw)}end\n{name}"
    else:
        text = f"{name}() {{\n{_closed(inner, draw)}}}\n{name}"
    return Piece(text, inner.output, inner.code, literal=inner.literal)


def evaluated(draw: Draw, depth: int) -> Piece:
    inner = any_piece(draw, depth - 1)
    return Piece(f"eval {draw.quote(inner.text)}", inner.output, inner.code, literal=inner.literal)


def condition(draw: Draw, depth: int) -> Piece:
    test, yes, no = any_piece(draw, depth - 1), any_piece(draw, depth - 1), any_piece(draw, depth - 1)
    chosen = yes if test.code == 0 else no
    if draw.fish:
        text = f"if begin; {_closed(test, draw)}end\n{_closed(yes, draw)}else\n{_closed(no, draw)}end"
    else:
        text = f"if {_closed(test, draw)}then {_closed(yes, draw)}else\n{_closed(no, draw)}fi"
    return Piece(text, test.output + chosen.output, chosen.code, literal=test.literal and chosen.literal)


def loop(draw: Draw, depth: int) -> Piece:
    inner, times = any_piece(draw, depth - 1), draw.rng.randrange(1, 4)
    words = " ".join(map(str, range(times)))
    if draw.fish:
        text = f"for i in {words}; {_closed(inner, draw)}end"
    else:
        text = f"for i in {words}; do {_closed(inner, draw)}done"
    return Piece(text, inner.output * times, inner.code, literal=inner.literal)


def piped(draw: Draw, depth: int) -> Piece:
    inner = group(draw, depth)
    return Piece(f"{inner.text} 2>&1 | cat", inner.output, literal=inner.literal)


def into_a_file(draw: Draw, depth: int) -> Piece:
    """Standard error goes with it, so that the order stays."""
    inner, name = group(draw, depth), draw.tag()
    return Piece(f"{inner.text} >{name} 2>&1; cat {name}; rm {name}", inner.output, literal=inner.literal)


def substituted(draw: Draw, depth: int) -> Piece | None:
    inner = any_piece(draw, depth - 1)
    if not inner.literal:
        return None
    output = inner.output.rstrip("\n") + "\n"
    if draw.fish:
        # fish changes the order of what a program and a builtin print there, and keeps empty lines.
        if ">&2" in inner.text or inner.output.strip("\n").count("\n") or not inner.output.strip("\n"):
            return None
        grouped = f"begin; {_closed(inner, draw)}end 2>&1"
        return Piece(f"printf '%s\\n' ({grouped} | string collect --allow-empty)", output)
    return Piece(f"printf '%s\\n' \"$( {{ {_closed(inner, draw)}}} 2>&1 )\"", output)


def in_the_background(draw: Draw, depth: int) -> Piece | None:
    """Of a subshell, which is silent about its jobs."""
    if draw.fish:
        return None
    inner = group(draw, depth)
    return Piece(f"( {inner.text} & wait )", inner.output, literal=inner.literal)


def with_exit_trap(draw: Draw, depth: int) -> Piece | None:
    if draw.fish:
        return None
    inner, tag = any_piece(draw, depth - 1), draw.tag()
    text = f"( trap 'echo {tag}' EXIT\n{_closed(inner, draw)})"
    return Piece(text, f"{inner.output}{tag}\n", inner.code, literal=inner.literal)


def stopped_by_error(draw: Draw, depth: int) -> Piece | None:
    """`set -e` in a process of its own: on the left of && or in a condition it would not count."""
    if draw.fish:
        return None
    one, code = draw.tag(), draw.rng.randrange(1, 256)
    script = f"set -eu; echo {one}; (exit {code}); echo never"
    return Piece(f"{draw.shell} {'--norc' if draw.shell == 'bash' else '-f'} -c {draw.quote(script)}", f"{one}\n", code)


def traced_nowhere(draw: Draw, depth: int) -> Piece | None:
    if draw.fish:
        return None
    inner = any_piece(draw, 0)
    if not inner.literal or inner.ends_line or ">&2" in inner.text:
        return None
    return Piece(f"( set -x; {inner.text} ) 2>/dev/null", inner.output, inner.code)


COMBINATIONS: list[Callable[[Draw, int], Piece | None]] = [
    sequence,
    sequence,
    and_or,
    group,
    subshell,
    function,
    evaluated,
    condition,
    loop,
    piped,
    into_a_file,
    substituted,
    in_the_background,
    with_exit_trap,
    stopped_by_error,
    traced_nowhere,
]
