"""All that a command printed can be read, whatever it is, however much, and also when its terminal is gone."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.mcp.peers import ERAS, Person, call, connected, ran, whole

from tarmac.errors import BadRequest
from tarmac.mcp import resources
from tarmac.mcp.resources import _page

each_era = pytest.mark.parametrize("era", ERAS)
FOLLOW = re.compile(r"\[[\d,]+ bytes follow: (\S+)\]\n\Z")


@pytest.mark.shell
@each_era
async def test_a_big_output_is_read_part_by_part_to_its_last_byte(
    tmp_path: Path, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A3: resources for full outputs: one reading has a limit, all readings together have all."""
    monkeypatch.setattr(resources, "MOST_BYTES", 100_000)
    async with connected(tmp_path, era, Person()) as client:
        for command in ("N=50000; seq $N", "seq 50000"):  # in a terminal, and without one
            uri = (await ran(client, command))["output_uri"]
            end = await whole(client, uri)
            parts, following = [], f"{uri}?from=0"
            while following:
                part = await whole(client, following)
                found = FOLLOW.search(part)
                parts.append(FOLLOW.sub("", part))
                following = found[1] if found else ""
            assert "".join(parts) == "".join(f"{n}\n" for n in range(1, 50001))
            notice, _, last = end.partition("\n")
            assert notice.startswith("[the first ") and f"{uri}?from=0" in notice
            begins = int(last.partition("\n")[0])
            assert last == "".join(f"{n}\n" for n in range(begins, 50001))
            with pytest.raises(Exception, match="no more than"):
                await client.read_resource(f"{uri}?from=99999999")
            with pytest.raises(Exception, match="no resource"):
                await client.read_resource(f"{uri}?to=5")


@pytest.mark.shell
@each_era
async def test_what_a_closed_terminal_printed_can_still_be_read(tmp_path: Path, era: str) -> None:
    """A3: the first command of a terminal is number 1, also of one that was opened for it."""
    async with connected(tmp_path, era, Person()) as client:
        id = (await call(client, "open_persistent_terminal"))["id"]
        printed = await call(client, "run_persistent_command", id=id, command="X=1; echo said $X")
        left = await call(client, "run_command", command="X=1; echo left; sleep 600", timeout=0.2)
        await call(client, "kill_persistent_terminal", id=id)
        assert await whole(client, f"tarmac://terminals/{printed['terminal_id']}/{printed['number']}") == "said 1\n"
    assert (printed["number"], left["number"]) == (1, 1) and left["terminal_id"] != id


@pytest.mark.shell
@each_era
async def test_output_that_is_no_text_arrives_as_text(tmp_path: Path, era: str) -> None:
    """A3: NUL, bytes that are no characters, escape sequences, and characters that turn a line around."""
    raw = b"a\0b\xff\xfe\x1b[31mred\x1b[0m\x1b]0;title\x07\xe2\x80\xae\xed\xa0\x80\r\nend\n"
    (tmp_path / "bytes").write_bytes(raw)
    (tmp_path / "text").write_bytes(raw.replace(b"\0", b""))
    async with connected(tmp_path, era, Person()) as client:
        for command in ("cat bytes", "cat text", "X=1; cat bytes", "X=1; cat text"):
            result = await ran(client, command)
            text = result["output"]
            if uri := result.get("output_uri"):
                text += await whole(client, uri)
            assert "end" in text or "binary" in text
            assert not set(text) & {"\0", "\x1b", "\u202e", "\ud800", "\x07"}


@given(st.binary(max_size=300), st.integers(0, 320), st.integers(1, 64), st.integers(0, 40))
def test_readings_lead_from_one_to_the_next(data: bytes, first: int, most: int, gone: int) -> None:
    """A3: every reading says where the next begins, until the last; what is kept no more is said."""
    held = resources.MOST_BYTES
    resources.MOST_BYTES = most  # type: ignore[misc]
    start = min(gone, len(data))

    def read(offset: int, size: int) -> tuple[int, bytes]:
        begin = max(offset, start)
        return begin, data[begin : begin + size]

    try:
        seen = 0
        while True:
            text = _page(read, len(data), first, "x")
            assert ("are not kept any more]" in text) == (first < start)
            found = FOLLOW.search(text)
            if not found:
                return
            following = int(found[1].partition("=")[2])
            assert first < following < len(data)
            first, seen = following, seen + 1
            assert seen <= 301
    except BadRequest:
        assert first > len(data)
    finally:
        resources.MOST_BYTES = held  # type: ignore[misc]
