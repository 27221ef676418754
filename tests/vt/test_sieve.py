"""is_binary: what is not worth showing as text."""

import pytest

from tarmac.vt.sieve import is_binary

GERMAN = "Die Größe der Straße läßt sich nicht ändern, sagte der Bürgermeister von Köln.\n"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"plain text\r\n",
        b"\x1b[1;32mok\x1b[0m\r\n" * 20,
        b"0%\r50%\r100%\b\b\a\n",
        GERMAN.encode() * 80,
        GERMAN.encode("latin-1") * 80,
        "Grüße".encode("latin-1"),
        "日本語".encode() * 900,
        "日本語".encode()[1:],
        "日本語".encode()[2:-1],
        "😀".encode()[1:] + b"ok",
        "\ufffd".encode() * 100,
    ],
)
def test_text_is_not_binary(data: bytes) -> None:
    assert not is_binary(data)


@pytest.mark.parametrize(
    "data",
    [b"text\0text", bytes(range(1, 256)) * 4, b"\x7fELF\x02\x01\x01\0", b"\x01\x02\x03\x04" * 9, b"\xff\xfe\xfa" * 50],
)
def test_nul_or_many_bytes_that_no_text_has_are_binary(data: bytes) -> None:
    assert is_binary(data)


def test_only_the_first_4_kib_are_looked_at() -> None:
    assert not is_binary(b"x" * 4096 + b"\0")
