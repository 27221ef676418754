"""ParsedArguments a line: every command is found, wherever it hides."""

import json
import re
import subprocess
from collections.abc import Iterator

import pytest

from tarmac.policy.parse.command import (
    BLOCKS,
    EXPANSIONS,
    LEAVES,
    QUIET,
    SUBSTITUTIONS,
    CommandLine,
    LineObstacle,
    ObstacleKind,
    read_line,
)
from tarmac.policy.parse.parser import Unreadable, check_text, parse, parser_path
from tarmac.policy.parse.words import ansi_c


async def read(line: str, dialect: str = "bash") -> CommandLine:
    return read_line(await parse(line, dialect, timeout=5), line, most=50)


async def names(line: str, dialect: str = "bash") -> list[str | None]:
    return [simple.name for simple in (await read(line, dialect)).simples]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("a | b |& c", ["a", "b", "c"]),
        ("a && b || c; d & e", ["a", "b", "c", "d", "e"]),
        ("(a; { b; })", ["a", "b"]),
        ("f() { a; }; f", ["a", "f"]),
        ("for i in $(a); do b; done", ["a", "b"]),
        ("while a; do b; done; until c; do d; done", ["a", "b", "c", "d"]),
        ("if a; then b; elif c; then d; else e; fi", ["a", "b", "c", "d", "e"]),
        ("case $(a) in x) b ;; *) c ;; esac", ["a", "b", "c"]),
        ('echo "$(a)" `b` <(c) >(d)', ["echo", "a", "b", "c", "d"]),
        ("echo ${x:-$(a)} ${y[$(b)]} $((z[$(c)]))", ["echo", "a", "b", "c"]),
        ('echo "${x:-`a`}"', ["echo", "a"]),
        ("[[ -v 'x' && $(a) ]]", ["[[", "a"]),
        ("cat <<END\n$(a)\nEND", ["cat", "a"]),
        ("cat <<'END'\n$(a)\nEND", ["cat"]),
        ("cat <<< $(a)", ["cat", "a"]),
        ("x=$(a) b", ["b", "a"]),
        ("x=($(a) b)", [None, "a"]),
        ("export X=$(a)", ["export", "a"]),
        ("coproc a; time b; ! c", ["a", "b", "c"]),
        ("a > $(b)", ["a", "b"]),
        ("select x in 1; do a; done", ["a"]),
        ("(( x = $(a) )); let y=$(b)", ["((", "a", "let", "b"]),
        ("declare -A m=([k]=$(a))", ["declare", "a"]),
        ("'a' b\\c \"d\"", ["a"]),
        ("$'\\x61' x", ["a"]),
        ("$x y", [None]),
    ],
)
async def test_commands_are_found_wherever_they_hide(line: str, found: list[str | None]) -> None:
    """P2: pipes, lists, groups, functions, loops, conditions, substitutions, here-documents, arrays."""
    assert await names(line) == found


async def test_a_pipe_knows_what_feeds_it() -> None:
    """P2: `curl … | sh` is more than its parts."""
    line = await read("(a; b) | c | d")
    assert [[each.name for each in simple.upstream] for simple in line.simples] == [[], [], ["a", "b"], ["a", "b", "c"]]


NODES = """
a "b$c" 'd' $(e) <(f) ${g} $((1 + -2 * (3))) x?(y); { a; }; (a); if a; then b; fi; while a; do b; done
for i in 1; do a; done; for ((i = 0; i < 3; i++)); do a; done; case x in y) a ;; esac; f() { a; }
[[ -f a && (b == c) ]]; ((x++)); let x=1; declare y=2; time a; coproc a; a && b; select z in 1; do a; done
"""


def kinds(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        if "Type" in node:
            yield node["Type"]
        for child in node.values():
            yield from kinds(child)
    elif isinstance(node, list):
        for child in node:
            yield from kinds(child)


def test_the_parsers_node_names_are_the_ones_we_know() -> None:
    """P2: golden. A new shfmt that renames or adds nodes must be noticed here; until then such a line asks."""
    path = parser_path()
    assert path is not None
    out = subprocess.run([path, "-ln", "bash", "--to-json"], input=NODES.encode(), capture_output=True, check=True)
    found = set(kinds(json.loads(out.stdout)))
    known = LEAVES | BLOCKS.keys() | QUIET.keys() | SUBSTITUTIONS | EXPANSIONS.keys()
    assert found <= known
    assert known - found == {"TestDecl", "FlagsArithm"}  # of bats and of zsh


async def test_a_node_nobody_knows_is_an_obstacle() -> None:
    """P2: syntax this code doesn't know is never allowed."""
    tree = {"Type": "File", "Stmts": [{"Cmd": {"Type": "Surprise", "X": {"Type": "Lit", "Value": "x"}}}]}
    line = read_line(tree, "x", most=50)
    assert line.obstacles[0] == LineObstacle(ObstacleKind.SYNTAX, "Surprise")
    assert line.steps is None


@pytest.mark.parametrize("line", ["ls 'x", "if", "a &&& b", "a ;; b", "(", "ls )", "for x do"])
async def test_what_no_shell_reads_is_not_read(line: str) -> None:
    """P2: a line that can't be parsed asks."""
    with pytest.raises(Unreadable):
        await parse(line, "bash", timeout=5)


@pytest.mark.parametrize(
    "line",
    [
        "x" * 40_000,
        "$(" * 41 + ")" * 41,
        "`" * 41,
        "ls \x1b[0m",
        "ls \u202egpj.txt",
        "ls \u200b",
        "a\rb",
        "a\x00b",
        "\ud800",
    ],
)
def test_what_nobody_could_see_or_follow_is_refused_unread(line: str) -> None:
    """P2: caps on length and nesting; characters that don't show."""
    with pytest.raises(Unreadable):
        check_text(line, longest=32_768, deepest=40)


def test_ansi_c_quoting_is_decoded_or_given_up() -> None:
    assert [ansi_c(x) for x in (r"\x72m", r"\162m", r"a\nb", r"\'", r"\u0072")] == ["rm", "rm", "a\nb", "'", "r"]
    assert [ansi_c(x) for x in (r"\cA", r"\u00e9", r"\x", r"\0")] == [None] * 4


def test_the_parser_is_the_one_that_was_installed_with_us() -> None:
    """A file named shfmt on the PATH, or in the workspace, is not it."""
    path = parser_path()
    assert path is not None
    assert re.fullmatch(r"/.*/shfmt", path)
