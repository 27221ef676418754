"""A text file survives being read and written: endings, BOM, encoding, the missing newline at its end."""

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarmac.errors import EditFailed
from tarmac.tools.edit import TextFile, decode

LINES = st.lists(st.tuples(st.text("ab é", max_size=3), st.sampled_from(["\n", "\r\n"])), max_size=12)


@given(st.binary(max_size=40) | st.text("aé→\r\n\0\ufeff", max_size=20).map(str.encode))
def test_whatever_is_text_is_written_back_byte_for_byte(data: bytes) -> None:
    """S10: reading and writing changes nothing."""
    try:
        file = decode(data)
    except EditFailed:
        return
    assert file.encode() == data
    assert file.with_text(file.text).encode() == data


@given(LINES, st.sampled_from([b"", codecs.BOM_UTF8]), st.integers(0, 12), st.text("xy", max_size=2))
def test_lines_that_stay_keep_their_ending(lines: list[tuple[str, str]], bom: bytes, at: int, new: str) -> None:
    """S10: an inserted line changes no other, whatever mixture of endings there is."""
    before = [f"{number}{line}{end}" for number, (line, end) in enumerate(lines)]
    file = decode(bom + "".join(before).encode())
    at = min(at, len(before))
    texts = [line.replace("\r\n", "\n") for line in before]
    after = file.with_text("".join([*texts[:at], f"new{new}\n", *texts[at:]])).encode().decode("utf-8-sig")
    pieces = after.splitlines(keepends=True)
    assert pieces[:at] + pieces[at + 1 :] == before
    assert pieces[at].rstrip("\r\n") == f"new{new}"
    assert (file.bom or b"") == bom


@pytest.mark.parametrize(
    ("data", "encoding", "text"),
    [
        (b"a\r\nb\r\n", "utf-8", "a\nb\n"),
        (b"a\rb\r", "utf-8", "a\nb\n"),
        (b"\xef\xbb\xbfa", "utf-8", "a"),
        ("é→".encode("utf-16"), "utf-16-le", "é→"),
        (b"caf\xe9\n", "cp1252", "café\n"),
        (b"\x93caf\xe9\x94\n", "cp1252", "“café”\n"),
        (b"caf\xe9 \x81\n", "latin-1", "café \x81\n"),
        ("é ".encode() + b"\xff\n", "utf-8", "é \udcff\n"),
    ],
)
def test_encodings_are_recognised(data: bytes, encoding: str, text: str) -> None:
    file = decode(data)
    assert (file.encoding, file.text) == (encoding, text)


def test_a_line_that_replaces_another_has_its_ending() -> None:
    file = decode(b"one\r\ntwo\nthree\r\nfour")
    assert file.with_text("one\nTWO\nTHREE\nfour\nfive").encode() == b"one\r\nTWO\nTHREE\r\nfour\r\nfive"


def test_an_edit_of_a_latin_1_file_stays_latin_1() -> None:
    file = decode(b"caf\xe9\n")
    assert file.with_text("thé\n").encode() == b"th\xe9\n"
    with pytest.raises(EditFailed, match="'→' can't be written: the file is cp1252"):
        file.with_text("café →\n").encode()


def test_bytes_that_cannot_be_shown_are_not_overwritten_by_what_was_shown_for_them() -> None:
    file = decode("é ".encode() + b"\xff\nb\n")
    assert file.stray_bytes
    assert file.with_text(file.text.replace("b", "c")).encode() == "é ".encode() + b"\xff\nc\n"
    with pytest.raises(EditFailed, match="would be lost"):
        file.with_text("é \ufffd\nc\n")


def test_a_binary_file_is_not_edited() -> None:
    with pytest.raises(EditFailed, match="binary file"):
        decode(b"\x7fELF\0\0")


def test_content_with_crlf_gets_the_endings_of_the_file() -> None:
    assert decode(b"a\n").with_text("b\r\nc\r\n").encode() == b"b\nc\n"
    assert decode(b"a\r\n").with_text("b\r\nc\n").encode() == b"b\r\nc\r\n"
    odd = decode(b"a\r\r\nb\r\n")
    assert odd.with_text(odd.text + "c\n").encode() == b"a\r\r\nb\r\nc\r\n"


def test_a_new_file_is_what_the_model_wrote() -> None:
    assert TextFile("a\nb").encode() == b"a\nb"
