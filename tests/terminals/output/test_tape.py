"""The tape: what a terminal printed, by offset, for any number of viewers."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarmac.errors import BadRequest
from tarmac.terminals import open_terminal
from tarmac.terminals.output.follow import Gap
from tarmac.terminals.output.tape import (
    CommandBegan,
    CommandEnded,
    Printed,
    Resized,
    Snapshot,
    Tape,
    TapePiece,
)
from tarmac.terminals.terminal import Terminal

WRITES = st.lists(st.binary(max_size=50) | st.tuples(st.integers(1, 99), st.integers(1, 99)), max_size=30)


def written(writes: list[bytes | tuple[int, int]], *, capacity: int = 1 << 20) -> Tape:
    tape = Tape(rows=40, columns=120, capacity=capacity)
    for each in writes:
        if isinstance(each, bytes):
            tape.write(each)
        else:
            tape.resize(*each)
    return tape


async def taken(pieces: AsyncIterator[TapePiece]) -> list[TapePiece]:
    return [piece async for piece in pieces]


@given(WRITES, st.data())
def test_a_viewer_that_comes_back_at_any_byte_misses_none_and_gets_none_twice(
    writes: list[bytes | tuple[int, int]], data: st.DataObject
) -> None:
    """T26: the stream cut at any byte, and read on from there, is the stream."""
    tape = written(writes)
    whole = b"".join(each for each in writes if isinstance(each, bytes))
    cut = data.draw(st.integers(0, tape.end))
    tape.close()
    pieces = asyncio.run(taken(tape.follow(cut)))
    printed = [each for each in pieces if isinstance(each, Printed)]
    assert tape.read(0, cut) + b"".join(each.data for each in printed) == whole
    offset = cut
    for each in printed:
        assert each.offset == offset
        offset += len(each.data)
    assert pieces == tape.pieces(cut)


@given(WRITES, st.integers(1, 120))
def test_the_ring_holds_the_last_bytes_and_the_sizes_they_were_printed_in(
    writes: list[bytes | tuple[int, int]], capacity: int
) -> None:
    tape = written(writes, capacity=capacity)
    whole = b"".join(each for each in writes if isinstance(each, bytes))
    sizes = [(40, 120)] * (len(whole) + 1)  # of the terminal, when each byte was printed
    offset = 0
    for each in writes:
        if isinstance(each, bytes):
            offset += len(each)
        else:
            sizes[offset:] = [each] * (len(sizes) - offset)
    assert tape.read(0, tape.end) == whole[-capacity:]
    assert tape.end == len(whole)
    size, told = tape.first_size, []
    for piece in tape.pieces(tape.start):
        if isinstance(piece, Resized):
            size = piece.rows, piece.columns
        elif isinstance(piece, Printed):
            told += [size] * len(piece.data)
    assert told == sizes[tape.start : tape.end]
    assert size == tape.size


@given(st.lists(st.binary(max_size=30), max_size=20), st.integers(0, 20))
def test_a_slow_reader_gets_a_gap_of_the_right_size(writes: list[bytes], capacity: int) -> None:
    tape = written(list(writes), capacity=capacity)
    tape.close()
    pieces = asyncio.run(taken(tape.follow(0)))
    lost = sum(each.bytes for each in pieces if isinstance(each, Gap))
    assert lost == tape.start
    assert b"".join(each.data for each in pieces if isinstance(each, Printed)) == b"".join(writes)[lost:]


def test_commands_that_print_nothing_do_not_fill_the_memory() -> None:
    tape = Tape(rows=1, columns=1)
    for number in range(10_000):
        tape.command_began(number)
    assert len(tape.pieces(0)) < 5000


async def test_an_offset_that_never_was_is_refused() -> None:
    with pytest.raises(BadRequest, match="no offset 7"):
        await anext(Tape(rows=1, columns=1).follow(7))


async def until(pieces: AsyncIterator[Snapshot | TapePiece], end: bytes) -> tuple[bytes, list[Snapshot | TapePiece]]:
    """What a viewer paints and gets, until it has painted `end`."""
    painted, got = b"", []
    async with asyncio.timeout(20):
        async for piece in pieces:
            got.append(piece)
            painted += piece.data if isinstance(piece, Printed | Snapshot) else b""
            if end in painted:
                break
    return painted, got


@pytest.mark.shell
async def test_viewers_see_the_same_as_the_command_runs(tmp_path: Path) -> None:
    """T26, T32: a snapshot, then everything from there, in order, with resizes and commands among it."""
    async with open_terminal(cwd=tmp_path, shell="bash") as terminal:
        await terminal.run("echo before")
        viewer = terminal.watch()
        first = await anext(viewer)
        assert isinstance(first, Snapshot)
        assert (first.rows, first.columns, first.offset) == (40, 120, terminal.tape.end)
        assert b"before\r\n" in first.data
        terminal.resize(rows=30, columns=100)
        await terminal.run("echo one; stty size")
        painted, got = await until(viewer, b"30 100")
        assert b"one\r\n30 100" in painted
        assert [each for each in got if isinstance(each, Resized)] == [Resized(first.offset, 30, 100)]
        numbers = [type(each) for each in terminal.tape.pieces(0) if isinstance(each, CommandBegan | CommandEnded)]
        assert numbers == [CommandBegan, CommandEnded] * 2


@pytest.mark.shell
async def test_a_slow_viewer_delays_nobody_and_goes_on_after_a_new_snapshot(tmp_path: Path) -> None:
    """T26: who falls out of the ring is told of the gap."""
    async with open_terminal(cwd=tmp_path, shell="bash") as terminal:
        viewer = terminal.watch()
        await anext(viewer)
        result = await terminal.run("seq 500000", timeout=60)
        assert result.exit_code == 0
        painted, got = await until(viewer, b"500000\r\n")
        assert [type(each) for each in got if isinstance(each, Gap | Snapshot)] == [Gap, Snapshot]
        assert len(painted) <= 1 << 20
        await terminal.run("echo on")
        assert b"on\r\n" in (await until(viewer, b"\non\r\n"))[0]


@pytest.mark.shell
async def test_viewers_come_to_an_end_with_their_terminal(tmp_path: Path) -> None:
    async with open_terminal(cwd=tmp_path, shell="bash") as terminal:
        viewer = asyncio.create_task(all_of(terminal))
        await terminal.run("echo last words")
    async with asyncio.timeout(5):
        assert b"last words\r\n" in await viewer


async def all_of(terminal: Terminal) -> bytes:
    pieces = [piece async for piece in terminal.watch(0)]
    return b"".join(piece.data for piece in pieces if isinstance(piece, Printed | Snapshot))


@pytest.mark.shell
async def test_a_reset_terminal_shows_nothing_of_the_task_before(tmp_path: Path) -> None:
    """T8."""
    async with open_terminal(cwd=tmp_path, shell="bash") as terminal:
        await terminal.run("echo theirs")
        terminal.resize(rows=20, columns=60)
        await terminal.reset(tmp_path)
        assert b"theirs" not in (await terminal.snapshot()).data
        assert terminal.recent_output().count("theirs") == 0
        assert (await terminal.run("stty size")).output == "40 120\n"


@pytest.mark.shell
async def test_a_fresh_shell_keeps_the_size_of_its_terminal(tmp_path: Path) -> None:
    async with open_terminal(cwd=tmp_path, shell="bash") as terminal:
        terminal.resize(rows=20, columns=60)
        await terminal.run("kill -9 $$")
        assert (await terminal.run("stty size")).output == "20 60\n"
