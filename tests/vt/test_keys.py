"""Key names become the bytes xterm would send."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarmac.errors import BadRequest
from tarmac.vt.keys import NAMES, keys


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("C-c", b"\x03"),
        ("C-C", b"\x03"),
        ("c-c", b"\x03"),
        ("Ctrl+C", b"\x03"),
        ("^C", b"\x03"),
        ("^c", b"\x03"),
        ("C-d", b"\x04"),
        ("C-[", b"\x1b"),
        ("^[", b"\x1b"),
        ("C-\\", b"\x1c"),
        ("C-]", b"\x1d"),
        ("C-^", b"\x1e"),
        ("C-_", b"\x1f"),
        ("C-/", b"\x1f"),
        ("^?", b"\x7f"),
        ("C-@", b"\0"),
        ("C-Space", b"\0"),
        ("M-x", b"\x1bx"),
        ("M-X", b"\x1bX"),
        ("Alt-x", b"\x1bx"),
        ("C-M-x", b"\x1b\x18"),
        ("M-C-x", b"\x1b\x18"),
        ("M-Enter", b"\x1b\r"),
        ("S-a", b"A"),
        ("C--", b"\x1b[27;5;45~"),
        ("C-1", b"\x1b[27;5;49~"),
        ("C-Enter", b"\x1b[27;5;13~"),
        ("S-Enter", b"\x1b[27;2;13~"),
        ("C-S-x", b"\x1b[27;6;88~"),
        ("C-Tab", b"\x1b[27;5;9~"),
        ("Enter", b"\r"),
        ("Return", b"\r"),
        ("Tab", b"\t"),
        ("S-Tab", b"\x1b[Z"),
        ("BackTab", b"\x1b[Z"),
        ("Escape", b"\x1b"),
        ("esc", b"\x1b"),
        ("Space", b" "),
        ("S-Space", b" "),
        ("Backspace", b"\x7f"),
        ("C-Backspace", b"\x08"),
        ("Up", b"\x1b[A"),
        ("arrowup", b"\x1b[A"),
        ("End", b"\x1b[F"),
        ("C-Up", b"\x1b[1;5A"),
        ("M-Left", b"\x1b[1;3D"),
        ("C-S-Right", b"\x1b[1;6C"),
        ("F1", b"\x1bOP"),
        ("C-F1", b"\x1b[1;5P"),
        ("F5", b"\x1b[15~"),
        ("S-F5", b"\x1b[15;2~"),
        ("F12", b"\x1b[24~"),
        ("Insert", b"\x1b[2~"),
        ("Del", b"\x1b[3~"),
        ("PgUp", b"\x1b[5~"),
        ("Page-Down", b"\x1b[6~"),
        ("M-PageDown", b"\x1b[6;3~"),
        ("é", "é".encode()),
        ("-", b"-"),
        ("^", b"^"),
        ("Escape : q ! Enter", b"\x1b:q!\r"),
        ("  Up\tDown\n", b"\x1b[A\x1b[B"),
    ],
)
def test_a_key_sends_what_xterm_sends(text: str, sent: bytes) -> None:
    assert keys(text) == sent


def test_a_program_in_application_mode_gets_its_arrows_as_ss3() -> None:
    assert keys("Up Home C-Up x", application_cursor=True) == b"\x1bOA\x1bOH\x1b[1;5Ax"


def test_every_named_key_sends_something_of_its_own() -> None:
    modified = [modifier + name for modifier in ("", "M-", "C-", "C-M-") for name in NAMES]
    sent = [keys(name) for name in modified]
    assert all(sent)
    assert len(set(sent)) == len(sent)


def test_shift_and_back_tab_are_one_key() -> None:
    assert keys("M-BackTab") == keys("M-S-Tab") == keys("S-M-Tab") == b"\x1b\x1b[Z"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("Entr", "did you mean `Enter`"),
        ("C-PageUpp", "`PageUp`"),
        ("F13", "`F1`"),
        ("hello-world-of-text", "send words as text"),
        ("S-1", "write the character itself"),
        ("", "C-c"),
        ("  ", "C-c"),
        ("\x01", "send words as text"),
        ("x" * 100_000, "send words as text"),
        ("\ud800", "send words as text"),
    ],
)
def test_what_is_no_key_is_refused_with_a_way_on(text: str, hint: str) -> None:
    with pytest.raises(BadRequest) as refused:
        keys(text)
    assert hint in refused.value.hint
    assert len(str(refused.value).encode()) < 300  # can be printed, whatever was asked for


@given(st.lists(st.sampled_from([*NAMES, "C-c", "M-x", "a", "^"]), min_size=1))
def test_keys_in_a_row_are_their_bytes_in_a_row(names: list[str]) -> None:
    assert keys(" ".join(names)) == b"".join(keys(name) for name in names)


@given(st.sampled_from(NAMES), st.sampled_from(["", "C-", "S-", "M-", "C-M-", "C-S-M-"]))
def test_the_case_of_a_name_does_not_matter(name: str, modifiers: str) -> None:
    assert keys((modifiers + name).lower()) == keys((modifiers + name).upper()) == keys(modifiers + name)


@given(st.characters().filter(lambda c: c.isprintable() and not c.isspace()))
def test_a_printable_character_stands_for_itself(char: str) -> None:
    assert keys(char) == char.encode()
    assert keys("M-" + char) == b"\x1b" + char.encode()


@given(st.text())
def test_any_text_is_keys_or_a_bad_request(text: str) -> None:
    try:
        assert keys(text)
    except BadRequest as refused:
        assert refused.hint


def test_difflib_is_loaded_only_for_a_mistake() -> None:
    code = "import sys; from tarmac.vt.keys import keys; keys('C-c'); sys.exit('difflib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
