"""Keep both ends of a byte stream of any length in a fixed amount of memory.

The head fills first and then never changes. The tail is a ring. Each byte is copied once, and a chunk is never kept
alive for a slice of it.
"""


class HeadTail:
    """The first and the last bytes of a stream, and how much is missing between them.

    Until something is dropped, `head + tail` is everything.
    """

    def __init__(self, limit: int = 1 << 20, *, head_share: float = 0.7) -> None:
        self._head_limit = int(limit * head_share)
        self._tail_limit = limit - self._head_limit
        self._head = bytearray()
        self._ring = bytearray()
        self._oldest = 0  # where the ring begins, once it is full
        self.total = 0
        self.dropped_lines = 0

    @property
    def head(self) -> bytes:
        return bytes(self._head)

    @property
    def tail(self) -> bytes:
        return bytes(self._ring[self._oldest :] + self._ring[: self._oldest])

    @property
    def dropped(self) -> int:
        """How many bytes are missing between head and tail."""
        return self.total - len(self._head) - len(self._ring)

    def last(self, size: int) -> bytes:
        """The last `size` bytes, or as many as there are without a gap."""
        ring, oldest = self._ring, self._oldest
        last = ring[max(0, oldest - size) : oldest]
        if len(last) < size:
            last = ring[max(oldest, len(ring) - size + len(last)) :] + last
        if len(last) < size and not self.dropped:
            last = self._head[-(size - len(last)) :] + last
        return bytes(last)

    def feed(self, data: bytes) -> None:
        self.total += len(data)
        room = self._head_limit - len(self._head)
        if room:
            self._head += data[:room]
            data = data[room:]
        if data:
            self._feed_tail(data)

    def _feed_tail(self, data: bytes) -> None:
        ring, limit = self._ring, self._tail_limit
        excess = len(data) - limit
        if excess >= 0:  # this chunk alone fills the tail: all before it is dropped
            self.dropped_lines += ring.count(b"\n") + data.count(b"\n", 0, excess)
            self._ring, self._oldest = bytearray(data[excess:]), 0
            return
        room = limit - len(ring)
        ring += data[:room]
        start = room
        while start < len(data):  # at most twice: up to the ring's end, then from its beginning
            size = min(limit - self._oldest, len(data) - start)
            end = self._oldest + size
            self.dropped_lines += ring.count(b"\n", self._oldest, end)
            ring[self._oldest : end] = data[start : start + size]
            self._oldest = end % limit
            start += size
