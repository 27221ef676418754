"""Servers that send a line without an end, or bytes that unpack to gigabytes."""

import gzip
import resource
import zlib
from functools import cache

import pytest
from tests.models.asking import ALL, Dialect, asked, failed, talking
from tests.models.server import Reply

from tarmac.models.messages import Text
from tarmac.models.provider import Completion
from tarmac.models.remote import LONGEST_LINE

pytestmark = pytest.mark.slow

every = pytest.mark.parametrize("dialect", ALL, ids=str)
MEGABYTE = 1 << 20


@cache
def _packed(size: int, byte: bytes) -> bytes:
    pack = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    return b"".join(pack.compress(byte * MEGABYTE) for _ in range(size >> 20)) + pack.flush()


@every
async def test_a_packed_answer_is_read(dialect: Dialect) -> None:
    """S10: gzip, cut anywhere."""
    whole = gzip.compress(b"".join(dialect.says("Hel", "lo")))
    pieces = [whole[i : i + 7] for i in range(0, len(whole), 7)]
    async with talking(dialect, Reply(pieces, headers={"content-encoding": "gzip"})) as (model, _):
        answer = (await asked(model))[-1]
    assert isinstance(answer, Completion) and answer.parts == (Text("Hello"),)


@every
async def test_a_line_without_an_end_is_given_up(dialect: Dialect) -> None:
    """S10: after 8 MiB, whatever the server still has."""
    line = [b"data: ", *[b"x" * MEGABYTE] * (2 * LONGEST_LINE // MEGABYTE)]
    error = await failed(dialect, Reply(line))
    assert "a line of the answer has more than 8 MiB" in str(error)


@every
@pytest.mark.parametrize("byte", [b"x", b"\n"])
async def test_what_unpacks_to_a_gigabyte_is_given_up(dialect: Dialect, byte: bytes) -> None:
    """S10: a megabyte of gzip. It takes little memory."""
    bomb = _packed(1024 * MEGABYTE, byte)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    error = await failed(dialect, Reply([bomb], headers={"content-encoding": "gzip"}))
    assert "MiB" in str(error)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KiB


@every
async def test_an_error_that_unpacks_to_a_gigabyte_is_given_up(dialect: Dialect) -> None:
    """S10: the SDK reads all of an error."""
    bomb = _packed(1024 * MEGABYTE, b" ")
    refused = Reply([bomb], status=400, content_type="application/json", headers={"content-encoding": "gzip"})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    await failed(dialect, refused)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KiB


@every
async def test_an_unknown_packing_is_refused(dialect: Dialect) -> None:
    """S10: nobody asked for it."""
    error = await failed(dialect, Reply([b"x"], headers={"content-encoding": "zstd"}))
    assert "packed with `zstd`" in str(error)
