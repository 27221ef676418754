"""What is typed becomes the commands that a shell would read."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarmac.terminals.pane import key_bytes, split_typed


@pytest.mark.parametrize(
    ("typed", "commands", "rest"),
    [
        ("ls\n", ["ls"], ""),
        ("ls", [], "ls"),
        ("cd src\nmake\npyt", ["cd src", "make"], "pyt"),
        ("cat <<EOF\nit's\nEOF\nls\n", ["cat <<EOF\nit's\nEOF", "ls"], ""),
        ("cat <<EOF\nno end\n", [], "cat <<EOF\nno end\n"),
        ("echo 'a\nb'\n", ["echo 'a\nb'"], ""),
        ("for x in 1 2; do\necho $x\ndone\nls\n", ["for x in 1 2; do\necho $x\ndone", "ls"], ""),
        ("echo a \\\nb\n", ["echo a \\\nb"], ""),
        ("echo )\nls\n", ["echo )", "ls"], ""),  # an error is bash's to report
        ("a\r\nb\r", ["a", "b"], ""),
    ],
)
async def test_typed_text_is_cut_where_the_shell_would(typed: str, commands: list[str], rest: str) -> None:
    """F7."""
    assert await split_typed(typed) == (commands, rest)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.from_regex(r"[a-z ./=-]{0,12}", fullmatch=True), max_size=6), st.text("abc ", max_size=5))
async def test_nothing_typed_is_lost(lines: list[str], rest: str) -> None:
    """F7."""
    typed = "".join(f"{line}\n" for line in lines) + rest
    commands, left = await split_typed(typed)
    assert "".join(f"{command}\n" for command in commands) + left == typed


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("C-c", b"\x03"),
        ("Enter", b"\r"),
        ("Escape", b"\x1b"),
        ("C-c\n", b"C-c\n"),
        ("Enter the room", b"Enter the room"),
        ("é", "é".encode()),
        ("", b""),
    ],
)
def test_a_name_alone_is_a_key_and_all_else_is_text(text: str, data: bytes) -> None:
    """F7."""
    assert key_bytes(text) == data
