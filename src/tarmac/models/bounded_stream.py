"""Limit what a server can make us hold: the length of a line of its stream, and what its bytes unpack to.

response → bound(response), an event hook of the HTTP client → the same response, unpacked here, piece by piece

The SDKs join a line until its end comes, and the HTTP client unpacks a whole piece at once: 64 KiB of gzip are 64 MiB.
"""

import asyncio
import zlib
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

from tarmac.models.provider import ModelError

if TYPE_CHECKING:
    import httpx2

LONGEST_LINE = 8 << 20  # bytes: an answer of 4,000,000 letters as one event
MOST_STREAMED = 256 << 20  # bytes of all that one answer unpacks to
MOST_OTHERWISE = 1 << 20  # bytes of an answer that is no stream: an error, a page
MOST_PACKED = 100  # times its size that packed text unpacks to, after the first MiB: events come to about 20
PIECE = 16 << 10  # bytes that are unpacked at a time
PACKED = frozenset({"gzip", "x-gzip", "deflate"})


async def bound(response: "httpx2.Response") -> None:
    """Put limits on a response before any of its body is read."""
    import httpx2

    class Stream(httpx2.AsyncByteStream):
        def __init__(self, inner: httpx2.AsyncByteStream) -> None:
            self._inner = inner

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for piece in self._inner:
                for part in limits.parts(piece):
                    yield part
                    if packed:  # else each piece is waited for
                        await asyncio.sleep(0)

        async def aclose(self) -> None:
            await self._inner.aclose()

    encoding = response.headers.get("content-encoding", "").strip().lower()
    packed = encoding in PACKED
    if encoding not in ("", "identity") and not packed:
        raise ModelError(f"the answer is packed with `{encoding[:20]}`, which was not asked for", kind="malformed")
    streams = response.headers.get("content-type", "").lower().startswith("text/event-stream")
    limits = _Limits(packed=packed, most=MOST_STREAMED if streams else MOST_OTHERWISE)
    if packed:
        del response.headers["content-encoding"]
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    response.stream = Stream(response.stream)


class _Limits:
    """What came so far of one response; an SDK may stop reading and go on later."""

    def __init__(self, *, packed: bool, most: int) -> None:
        # 32: gzip or zlib, by its first bytes
        self._unpack = zlib.decompressobj(zlib.MAX_WBITS | 32) if packed else None
        self._most = most
        self._came = self._total = self._line = 0

    def parts(self, piece: bytes) -> Iterator[bytes]:
        """The bytes, unpacked; ModelError when a line, or all of it, is too long."""
        self._came += len(piece)
        if self._unpack is None:
            self._count(piece)
            yield piece
            return
        while piece:
            try:
                part = self._unpack.decompress(piece, PIECE)
            except zlib.error as error:
                raise ModelError(f"the answer can't be unpacked: {error}", kind="malformed") from None
            piece = self._unpack.unconsumed_tail
            self._count(part)
            if part:
                yield part

    def _count(self, part: bytes) -> None:
        self._total += len(part)
        end = max(part.rfind(b"\n"), part.rfind(b"\r"))
        self._line = self._line + len(part) if end < 0 else len(part) - end - 1
        if self._line > LONGEST_LINE:
            what = f"a line of the answer has more than {LONGEST_LINE >> 20} MiB"
            raise ModelError(what, kind="malformed", retryable=False)
        packed = self._unpack is not None
        most = min(self._most, (1 << 20) + MOST_PACKED * self._came) if packed else self._most
        if self._total > most:
            what = f"the answer has more than {most >> 20} MiB"
            raise ModelError(
                f"{what}, out of {self._came:,} bytes" if packed else what, kind="malformed", retryable=False
            )
