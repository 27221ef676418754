"""Bodies that never come to their end: they hold no connection for long, and lock nobody out."""

import asyncio
import contextlib
from pathlib import Path

import pytest
from tests.web.served import PATIENCE, served

from tarmac.loopback import http_server

pytestmark = pytest.mark.slow  # hundreds of connections, and waits of seconds

SLOW = (
    "POST /api/session HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
    "Content-Type: application/json\r\nContent-Length: 900\r\n\r\n{{"
)
ASKS = "GET /api/tasks HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"


async def test_300_slow_bodies_lock_nobody_out(tmp_path: Path) -> None:
    """A4: there is room for 256 connections; the one that has kept us waiting longest makes room for who comes."""
    async with served(tmp_path) as server:
        slow = []
        for _ in range(300):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            with contextlib.suppress(ConnectionError):
                writer.write(SLOW.format(port=server.port).encode())
                await writer.drain()
            slow.append(writer)
        answers = []
        for _ in range(5):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(ASKS.format(port=server.port).encode())
            answers.append(await asyncio.wait_for(reader.read(100), PATIENCE))
            writer.close()
        for each in slow:
            each.close()
    assert [each.split()[1:2] for each in answers] == [[b"401"]] * 5


async def test_a_body_that_does_not_come_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A4: byte by byte or not at all, it has its time as a whole."""
    monkeypatch.setattr(http_server, "TO_SEND", 1.0)
    async with served(tmp_path) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(SLOW.format(port=server.port).encode())

        async def drip() -> None:
            with contextlib.suppress(ConnectionError):
                while True:
                    writer.write(b" ")
                    await writer.drain()
                    await asyncio.sleep(0.05)

        dripping = asyncio.ensure_future(drip())
        with contextlib.suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(), PATIENCE) == b""
        dripping.cancel()
        writer.close()
