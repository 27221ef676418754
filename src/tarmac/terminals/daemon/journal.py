"""Write what a PTY printed to disk before anybody reads it.

    PTY ──splice──→ pipe ──splice──→ file ──pread──→ the program

A program that is killed right after a `read` takes the bytes with it. So the program never holds the only copy of a
byte. The kernel moves bytes into a pipe, and from the pipe into a file. The daemon holds the pipe as well. When the
program is gone, the daemon first moves what is left in the pipe, and then reads the PTY itself.

The stream has absolute offsets. Each file holds 4 MiB, and the oldest files are deleted when there are too many.
Some kernels can't splice from a terminal. There bytes are read and written, and a kill may lose the last of them.
"""

# ruff: noqa: PTH108, PTH208
# (the daemon does without pathlib)

import errno
import os

SEGMENT = 4 << 20
PIECE = 64 << 10
A_READ = 4096  # a terminal gives no more at once; for more the kernel would set pages aside in vain
_SPLICE = hasattr(os, "splice")


class Journal:
    """The bytes of one PTY. One process at a time may append: the program, or the daemon while there is none."""

    def __init__(self, folder: str, pipe: tuple[int, int], *, limit: int = 64 << 20) -> None:
        self.folder = folder
        self.lost = 0  # bytes that a full or broken disk took
        self._read_end, self._write_end = pipe
        self._limit = max(limit, 2 * SEGMENT)
        self._can_splice = _SPLICE
        self._fd = -1
        self._segment = -1  # which one `_fd` is
        names = sorted(int(each) for each in os.listdir(folder) if each.isdigit())
        self._first = names[0] if names else 0
        last = names[-1] if names else 0
        self.end = last * SEGMENT + (os.stat(f"{folder}/{last}").st_size if names else 0)

    @property
    def start(self) -> int:
        """The offset of the oldest byte that is kept."""
        return self._first * SEGMENT

    # Appending

    def take(self, source: int) -> bytes:
        """Move what the terminal printed to the file, and return it. BlockingIOError: there is nothing."""
        begin = self.end
        data = self._move(source)
        if data is None:
            data = os.pread(self._fd, self.end - begin, begin % SEGMENT)
        return data

    def absorb(self, source: int) -> int:
        """The same, for one who does not look at it; how many bytes."""
        begin = self.end
        self._move(source)
        return self.end - begin

    def recover(self) -> None:
        """Move what lies in the pipe: a program was killed between two steps."""
        if not _SPLICE:
            return
        while True:
            try:
                if not self._settle(PIECE):
                    return
            except BlockingIOError:
                return

    def _move(self, source: int) -> bytes | None:
        """The bytes, where they had to pass through us; None: they are at the end of the file."""
        fd, at = self._fd_at_end(), self.end % SEGMENT
        if self._can_splice:
            try:
                size = os.splice(source, self._write_end, min(A_READ, SEGMENT - at))
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
                self._can_splice = False  # an old kernel
            else:
                try:
                    moved = os.splice(self._read_end, fd, size, offset_dst=at)
                except OSError:
                    moved = 0
                self.end += moved
                return None if moved == size else self._to_file(size, size - moved)
        data = os.read(source, min(A_READ, SEGMENT - at))
        try:
            self._append(data)
        except OSError:
            self.lost += len(data)
        return data

    def _to_file(self, size: int, left: int) -> bytes | None:
        """Move the `left` of `size` bytes, which the first attempt did not."""
        while left:
            try:
                left -= self._settle(left)
            except OSError:  # the disk is full: the program must go on all the same
                data = os.read(self._read_end, left)
                self.lost += len(data)
                done = os.pread(self._fd, size - left, self.end % SEGMENT - (size - left)) if size > left else b""
                return done + data
        return None

    def _settle(self, size: int) -> int:
        room = SEGMENT - self.end % SEGMENT
        moved = os.splice(self._read_end, self._fd_at_end(), min(size, room), offset_dst=self.end % SEGMENT)
        self.end += moved
        return moved

    def _append(self, data: bytes) -> None:
        os.pwrite(self._fd_at_end(), data, self.end % SEGMENT)
        self.end += len(data)

    def _fd_at_end(self) -> int:
        segment = self.end // SEGMENT
        if segment != self._segment:
            self.close()
            self._fd = os.open(f"{self.folder}/{segment}", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            self._segment = segment
            self.trim(self.end - self._limit)
        return self._fd

    # Reading

    def read(self, offset: int, size: int = PIECE) -> bytes:
        """Up to `size` bytes from `offset`; fewer at the end of a file, none at the end of all."""
        segment = offset // SEGMENT
        size = min(size, self.end - offset, SEGMENT - offset % SEGMENT)
        if size <= 0:
            return b""
        if segment == self._segment:
            return os.pread(self._fd, size, offset % SEGMENT)
        try:
            fd = os.open(f"{self.folder}/{segment}", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return b""
        try:
            return os.pread(fd, size, offset % SEGMENT)
        finally:
            os.close(fd)

    # Ends

    def trim(self, before: int) -> None:
        """Nobody needs what came before this offset: whole files of it go."""
        while (self._first + 1) * SEGMENT <= min(before, self.end):
            try:
                os.unlink(f"{self.folder}/{self._first}")
            except OSError:
                pass
            self._first += 1

    def close(self) -> None:
        """Hold no file open; the pipe belongs to others."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = self._segment = -1
