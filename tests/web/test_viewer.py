"""Viewers: no byte lost or doubled wherever the socket is cut; a slow one delays nobody."""

import asyncio
import itertools
import struct
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.web.served import page, served

from tarmac.server.live_terminals import WINDOW, Viewer
from tarmac.terminals import open_terminal
from tarmac.terminals.output.tape import Tape


@pytest.mark.shell
async def test_a_socket_cut_again_and_again_loses_no_byte(tmp_path: Path) -> None:
    """T26, A4: a page that comes back says up to where it has seen; the bytes go on from that very one."""
    async with served(tmp_path) as server:
        proof = server.proof()
        async with page(server.port, proof) as first:
            terminal = (await first.do("open"))["terminal"]
            await first.do("watch", terminal=terminal)
            await first.until(lambda: first.screen(terminal).snapshots)
            start = first.screen(terminal).start
        live = server.server.state.terminals.get(terminal)
        running = asyncio.create_task(live.run("seq 1 8000; echo the''end"))
        seen = bytearray()
        kept = itertools.cycle([1, 2, 977, 30_000, 4096])  # how much of what came was drawn before the cut
        while b"theend" not in seen:
            async with page(server.port, proof) as one:
                screen = one.screen(terminal)
                screen.start = start + len(seen)
                await one.do("watch", terminal=terminal, **{"from": screen.start})
                await one.until(lambda: screen.data)  # noqa: B023
                seen += screen.data[: next(kept)]
                assert not screen.snapshots, "the bytes were still there: no snapshot was due"
        await running
        assert live.tape.read(start, start + len(seen)) == bytes(seen)


@pytest.mark.shell
@pytest.mark.slow
async def test_a_page_that_does_not_read_on_delays_nobody_and_gets_a_new_snapshot(tmp_path: Path) -> None:
    """T26, A4: at most 256 KiB are unacknowledged; more than 1 MiB behind means a snapshot."""
    async with (
        served(tmp_path) as server,
        page(server.port, server.proof()) as quick,
        page(server.port, server.proof(), acks=False) as slow,
    ):
        terminal = (await quick.do("open"))["terminal"]
        await slow.until(lambda: terminal in slow.terminals)
        for each in (quick, slow):
            await each.do("watch", terminal=terminal)
            await each.until(lambda: each.screen(terminal).snapshots)  # noqa: B023
        live = server.server.state.terminals.get(terminal)
        result = await live.run("seq 1 400000; echo the''end")
        assert result.exit_code == 0
        await quick.until(lambda: "theend" in quick.screen(terminal).text())
        assert len(slow.screen(terminal).data) <= WINDOW
        assert slow.screen(terminal).snapshots == 1
        slow.acks = True
        await slow.send(do="ack", terminal=terminal, offset=slow.screen(terminal).end)
        await slow.until(lambda: "theend" in slow.screen(terminal).text())
        assert slow.screen(terminal).snapshots > 1


@given(
    st.lists(st.binary(min_size=1, max_size=2000), min_size=1, max_size=30),
    st.lists(st.integers(0, 60_000), max_size=5),
    st.integers(500, 5000),
)
@settings(max_examples=60)
def test_cut_anywhere_the_pieces_make_the_tape(writes: list[bytes], cuts: list[int], capacity: int) -> None:
    """A4: for every place of the cut: what was seen, and what came after, are the tape, or a snapshot said so."""
    asyncio.run(_cut_anywhere(writes, cuts, capacity))


async def _cut_anywhere(writes: list[bytes], cuts: list[int], capacity: int) -> None:
    async with open_terminal(cwd=Path.cwd(), provider="exec") as terminal:
        terminal.tape = tape = Tape(rows=24, columns=80, capacity=capacity)
        whole = b"".join(writes)
        seen: dict[int, int] = {}  # offset → byte
        at: int | None = 0
        for cut in [*(each % (len(whole) + 1) for each in cuts), None]:
            frames: list[bytes] = []

            async def send(frame: bytes, frames: list[bytes] = frames) -> None:
                frames.append(frame)

            viewer = Viewer(terminal, 1, send)
            watching = asyncio.create_task(viewer.run(at))
            while writes:
                tape.write(writes.pop(0))
                await asyncio.sleep(0)
                if cut is not None and tape.end >= cut:
                    break
            for _ in range(20):
                await asyncio.sleep(0)
            if cut is None:
                tape.close()
                await watching  # to the end
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            for frame in frames:
                kind, _, offset = struct.unpack(">BIQ", frame[:13])
                if kind == 1:
                    at = offset
                elif kind == 2:
                    assert offset == at
                    for place, byte in enumerate(frame[13:], offset):
                        assert place not in seen
                        seen[place] = byte
                    at = offset + len(frame) - 13
        assert at == len(whole)
        assert all(whole[place] == byte for place, byte in seen.items())


@example([30_000, 300_000])
@given(st.lists(st.integers(1, 300_000), min_size=1, max_size=6))
@settings(max_examples=20, deadline=None)
def test_a_page_that_acknowledges_every_64_kib_is_never_stuck(sizes: list[int]) -> None:
    """A4: less than that stays open for ever, however large the next piece is."""
    asyncio.run(_acknowledged_now_and_then(sizes))


async def _acknowledged_now_and_then(sizes: list[int]) -> None:
    async with open_terminal(cwd=Path.cwd(), provider="exec") as terminal:
        terminal.tape = tape = Tape(rows=24, columns=80, capacity=4 << 20)
        drawn = acknowledged = 0
        shown = asyncio.Event()

        async def send(frame: bytes) -> None:
            nonlocal drawn, acknowledged
            shown.set()
            _, _, offset = struct.unpack(">BIQ", frame[:13])
            drawn = offset + len(frame) - 13
            if drawn - acknowledged >= 64 << 10:
                acknowledged = drawn
                viewer.ack(drawn)

        viewer = Viewer(terminal, 1, send)
        async with asyncio.timeout(20):
            watching = asyncio.create_task(viewer.run(0))
            for size in sizes:  # the next piece comes when the one before is drawn
                tape.write(b"x" * size)
                while drawn < tape.end:
                    shown.clear()
                    await shown.wait()
            tape.close()
            await watching
    assert drawn == sum(sizes)
