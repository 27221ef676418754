"""The bytes of a command, on disk: bounded, readable at any time, honest about what is missing."""

import errno
import os
import re
import resource
import stat
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarmac.errors import BadRequest
from tarmac.terminals import Settings
from tarmac.terminals.output.spool import BLOCK, Lines, Match, Spool, Spools


def whole(spool: Spool) -> bytes:
    """All that read() gives from the start, in small bites, across holes."""
    text, here = b"", 0
    while True:
        at, piece = spool.read(here, 7_000)
        if not piece:
            return text
        text, here = text + piece, at + len(piece)


def spool_of(path: Path, text: bytes) -> Spool:
    spool = Spool(path / "out")
    spool.write(text)
    return spool


def files(directory: Path) -> list[str]:
    return [file.name for file in directory.iterdir()]


def descriptors() -> int:
    return len(files(Path("/dev/fd")))


# --- what it costs ---


def test_a_command_without_output_costs_no_file(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "no-such-directory/out")
    spool.flush()
    assert (spool.start, spool.end, spool.read(0, 10), spool.error) == (0, 0, (0, b""), None)
    spool.close()
    spool.remove()
    assert (spool.error, files(tmp_path)) == (None, [])


def test_small_output_is_in_memory_until_the_end_and_then_in_a_private_file(tmp_path: Path) -> None:
    before = descriptors()
    spool = spool_of(tmp_path, b"hello\n")
    assert (files(tmp_path), spool.read(0, 100), descriptors()) == ([], (0, b"hello\n"), before)
    spool.close()
    assert (tmp_path / "out").read_bytes() == b"hello\n"
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o600
    assert (spool.read(0, 100), descriptors()) == ((0, b"hello\n"), before)


def test_more_than_the_buffer_goes_to_disk_at_once_and_is_not_inherited(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "out", buffer=10)
    spool.write(b"0123456789")
    assert files(tmp_path) == []
    spool.write(b"a")
    assert (tmp_path / "out").read_bytes() == b"0123456789a"
    inherited = [fd for fd in map(int, files(Path("/dev/fd"))) if fd > 2 and _points_to(fd, tmp_path / "out")]
    assert [os.get_inheritable(fd) for fd in inherited] == [False]
    spool.close()


def _points_to(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except OSError:
        return False


# --- reading ---


def test_reading_spans_the_file_and_memory(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "out")
    spool.write(b"on disk,")
    spool.flush()
    spool.write(b" in memory")
    assert spool.read(3, 10) == (3, b"disk, in m")
    assert spool.read(9, 100) == (9, b"in memory")
    assert spool.read(-5, 2) == (0, b"on")
    assert spool.read(18, 5) == (18, b"")
    assert spool.read(99, 5) == (18, b"")
    assert spool.read(0, 0)[1] == b""
    spool.close()


def test_a_closed_spool_can_be_read_and_even_written_again(tmp_path: Path) -> None:
    before = descriptors()
    spool = spool_of(tmp_path, b"one ")
    spool.close()
    spool.close()
    spool.write(b"two")
    spool.close()
    assert (whole(spool), (tmp_path / "out").read_bytes(), descriptors()) == (b"one two", b"one two", before)


def test_a_deleted_file_is_a_gap_not_an_exception(tmp_path: Path) -> None:
    spool = spool_of(tmp_path, b"gone")
    spool.close()
    (tmp_path / "out").unlink()
    spool.write(b"still here")
    assert spool.read(0, 100) == (4, b"still here")
    assert isinstance(spool.error, FileNotFoundError)


def test_a_file_cut_short_by_somebody_else_is_a_gap(tmp_path: Path) -> None:
    spool = spool_of(tmp_path, b"0123456789")
    spool.flush()
    os.truncate(tmp_path / "out", 4)
    spool.write(b"new")
    assert (spool.read(0, 100), spool.read(4, 100)) == ((0, b"0123"), (10, b"new"))
    assert whole(spool) == b"0123new"
    spool.close()


def test_remove_leaves_nothing_and_can_be_repeated(tmp_path: Path) -> None:
    spool = spool_of(tmp_path, b"secret")
    spool.flush()
    spool.write(b" more")
    spool.remove()
    spool.remove()
    spool.write(b"late")
    spool.close()
    assert (files(tmp_path), spool.read(0, 99), spool.end, spool.dropped) == ([], (15, b""), 15, 15)
    assert spool.error is None


@pytest.mark.parametrize("kind", ["file", "symlink"])
def test_what_is_already_there_is_neither_overwritten_nor_removed(tmp_path: Path, kind: str) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    path = victim
    if kind == "symlink":
        path = tmp_path / "out"
        path.symlink_to(victim)
    spool = Spool(path)
    spool.write(b"overwritten?")
    spool.close()
    assert (victim.read_bytes(), spool.read(0, 99)) == (b"precious", (0, b"overwritten?"))
    assert isinstance(spool.error, FileExistsError)
    spool.remove()
    assert path.exists()


# --- the limit ---


def test_over_the_limit_the_oldest_go_and_offsets_stay_true(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "out", limit=1000, buffer=10)
    text = b"".join(b"%09d\n" % number for number in range(101))
    spool.write(text[:1000])
    spool.flush()
    assert not spool.crowded
    spool.write(text[1000:])
    spool.flush()
    assert spool.crowded
    spool.compact()
    assert (spool.crowded, spool.start, spool.end, spool.dropped, spool.lost) == (False, 520, 1010, 520, 0)
    assert spool.read(0, 2000) == (520, text[520:])
    assert (tmp_path / "out").read_bytes() == text[520:]
    assert files(tmp_path) == ["out"]
    spool.close()
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o600


def test_compacting_what_is_not_crowded_does_nothing(tmp_path: Path) -> None:
    spool = spool_of(tmp_path, b"few")
    spool.compact()
    spool.flush()
    spool.compact()
    assert (whole(spool), spool.dropped, spool.error) == (b"few", 0, None)
    spool.close()
    spool.compact()


@pytest.mark.parametrize("size", [1, 99, 64_000, 5_000_000])
def test_the_file_stays_bounded_when_nobody_compacts(tmp_path: Path, size: int) -> None:
    spool = Spool(tmp_path / "out", limit=100_000, buffer=1000)
    stream = os.urandom(max(600_000, size))
    largest = 0
    for here in range(0, len(stream), size):
        spool.write(stream[here : here + size])
        if here % 997 == 0:
            largest = max(largest, sum(file.stat().st_size for file in tmp_path.iterdir()))
    spool.close()
    assert largest <= 125_000
    assert spool.end - spool.start >= 25_000
    assert whole(spool) == stream[spool.start :]


def test_a_limit_smaller_than_any_write_still_holds(tmp_path: Path) -> None:
    for limit in (0, 1, 5):
        spool = Spool(tmp_path / f"out{limit}", limit=limit)
        spool.write(b"0123456789")
        spool.close()
        assert whole(spool) == b"0123456789"[spool.start :]
        assert spool.end - spool.start <= max(5, limit + 1)


def test_others_may_read_and_write_while_a_thread_compacts(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "out", limit=8 << 20)
    block = bytes(range(256)) * 256
    for _ in range(200):
        spool.write(block)
    threads = [threading.Thread(target=spool.compact) for _ in range(3)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        spool.write(block)
        at, piece = spool.read(spool.start, 1000)
        assert piece == (block + block)[at % 256 :][:1000]
    for thread in threads:
        thread.join()
    spool.close()
    text = whole(spool)
    assert len(text) == spool.end - spool.start
    assert text == (block * (spool.end // len(block)))[spool.start :]
    assert (spool.error, files(tmp_path)) == (None, ["out"])


def test_removing_while_a_thread_compacts_leaves_nothing(tmp_path: Path) -> None:
    before = descriptors()
    for _ in range(20):
        spool = Spool(tmp_path / "out", limit=4 << 20)
        spool.write(bytes(4_500_000))
        thread = threading.Thread(target=spool.compact)
        thread.start()
        spool.remove()
        thread.join()
        assert files(tmp_path) == []
    assert descriptors() == before


def test_a_compaction_that_fails_changes_nothing_and_is_not_asked_for_at_once(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "out", limit=1000, buffer=10)
    spool.write(b"x" * 1100)
    spool.flush()
    (tmp_path / "out.new").mkdir()
    spool.compact()
    assert isinstance(spool.error, OSError)
    assert (spool.start, whole(spool), spool.crowded) == (0, b"x" * 1100, False)
    (tmp_path / "out.new").rmdir()
    spool.compact()
    assert spool.start == 1100 - 400  # 500 would have taken more than 1500 on disk
    spool.close()


# --- a disk that fails ---


def test_a_full_disk_costs_only_the_bytes_it_did_not_take(tiny_disk: Path) -> None:
    stream = os.urandom(3_000_000)
    spool = Spool(tiny_disk / "out")
    ballast = tiny_disk / "ballast"
    ballast.write_bytes(bytes(100_000))
    for here in range(0, 600_000, 10_000):
        spool.write(stream[here : here + 10_000])
    assert spool.error is not None
    assert spool.error.errno == errno.ENOSPC
    assert 0 < spool.lost < 600_000 - 100_000
    kept = spool.read(0, 600_000)[1]
    assert len(kept) > 100_000
    assert spool.read(len(kept), 600_000) == (600_000 - BLOCK, stream[600_000 - BLOCK : 600_000])  # in memory

    ballast.unlink()
    spool.flush()  # room has returned
    lost = spool.lost
    spool.write(stream[600_000:610_000])
    spool.close()
    hole = 600_000 - BLOCK
    assert spool.read(0, 600_000) == (0, stream[: len(kept)])
    assert spool.read(len(kept), 600_000) == (hole, stream[hole:610_000])
    assert (spool.lost, spool.dropped, spool.end) == (lost, hole - len(kept), 610_000)


def test_a_full_disk_is_tried_again_without_being_asked(tiny_disk: Path) -> None:
    spool = Spool(tiny_disk / "out", buffer=1000)
    (tiny_disk / "ballast").write_bytes(bytes(250_000))
    for _ in range(10):
        spool.write(bytes(10_000))
    assert spool.lost > 0
    (tiny_disk / "ballast").unlink()
    for _ in range(110):
        spool.write(b"x" * 10_000)
    assert (tiny_disk / "out").stat().st_size > 0
    assert spool.read(spool.end - 5, 5)[1] == b"xxxxx"
    spool.close()


def test_a_full_disk_while_compacting_is_survived(tiny_disk: Path) -> None:
    stream = os.urandom(500_000)
    spool = Spool(tiny_disk / "out", limit=200_000, buffer=1000)
    for here in range(0, len(stream), 5_000):
        spool.write(stream[here : here + 5_000])
    assert spool.error is not None
    assert spool.read(spool.end - 1000, 1000) == (spool.end - 1000, stream[-1000:])
    assert files(tiny_disk) == ["out"]
    spool.close()


def test_many_holes_do_not_grow_memory(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "out", buffer=1)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    for size in range(1, 200):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        try:
            spool.flush()
            spool.write(b"ab" * 10)
            spool.write(b"cd" * 10)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    spool.close()
    assert spool.start > 0
    assert spool.lost > 0
    assert len(whole(spool)) == spool.end - spool.dropped
    assert len(whole(spool)) < 200


def test_a_missing_directory_and_too_many_open_files_are_remembered(tmp_path: Path) -> None:
    gone = Spool(tmp_path / "gone/out")
    gone.write(b"x" * 100_000)
    assert isinstance(gone.error, FileNotFoundError)
    assert (gone.lost, gone.read(0, 1 << 20)) == (100_000 - BLOCK, (100_000 - BLOCK, b"x" * BLOCK))
    (tmp_path / "gone").mkdir()
    gone.close()
    assert (tmp_path / "gone/out").stat().st_size == BLOCK

    crowd = Spool(tmp_path / "crowd")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        crowd.write(b"x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert crowd.error is not None
    assert crowd.error.errno == errno.EMFILE


# --- lines ---


def test_lines_by_number_and_from_the_end(tmp_path: Path) -> None:
    spool = spool_of(tmp_path, b"one\r\ntwo\n\nfour\nunfinished")
    assert spool.lines(1) == Lines(1, (b"one", b"two", b"", b"four", b"unfinished"), total=5, cut=False)
    assert spool.lines(2, 3) == Lines(2, (b"two", b""), total=5, cut=False)
    assert spool.lines(-2) == Lines(4, (b"four", b"unfinished"), total=5, cut=False)
    assert spool.lines(-99, -5) == Lines(1, (b"one",), total=5, cut=False)
    assert spool.lines(4, 99) == Lines(4, (b"four", b"unfinished"), total=5, cut=False)
    assert spool.lines(9, 10) == Lines(9, (), total=5, cut=False)
    assert spool.lines(3, 2) == Lines(3, (), total=5, cut=False)
    with pytest.raises(BadRequest, match="no line 0"):
        spool.lines(0)


def test_lines_of_nothing_are_none(tmp_path: Path) -> None:
    assert Spool(tmp_path / "out").lines(-10) == Lines(1, (), total=0, cut=False)


def test_lines_are_cut_at_the_cap_and_say_so(tmp_path: Path) -> None:
    spool = spool_of(tmp_path, b"0123456789\n" * 10)
    assert spool.lines(2, 9, most=15) == Lines(2, (b"0123456789", b"0123"), total=10, cut=True)
    assert spool.lines(2, 3, most=21) == Lines(2, (b"0123456789", b"0123456789"), total=10, cut=False)
    endless = spool_of(tmp_path / "x", b"x" * 1_000_000)
    assert endless.lines(1, most=100) == Lines(1, (b"x" * 100,), total=1, cut=True)


def test_a_hole_ends_a_line(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "out", buffer=4)
    spool.write(b"left")
    spool.flush()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4, before[1]))
    try:
        spool.write(b" lost right")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert spool.lines(1).lines == (b"left", b"ight")
    assert [match.line for match in spool.search("l.*t")] == [b"left"]
    spool.close()


@settings(deadline=None)
@given(
    st.lists(st.sampled_from([b"a", b"b\n", b"\n", b"\r\n", b"long" * 9000, b"x\n" * 40_000]), max_size=12),
    st.integers(-9, 9).filter(bool),
    st.integers(-9, 9).filter(bool),
)
def test_lines_are_those_of_the_text(pieces: list[bytes], first: int, last: int) -> None:
    text = b"".join(pieces)
    with tempfile.TemporaryDirectory() as name:
        spool = spool_of(Path(name), text)
        found = spool.lines(first, last, most=1 << 30)
        spool.close()
    expected = [line.rstrip(b"\r") for line in text.removesuffix(b"\n").split(b"\n")] if text else []
    low = first - 1 if first > 0 else max(0, len(expected) + first)
    high = last if last > 0 else len(expected) + last + 1
    assert found == Lines(low + 1, tuple(expected[low : max(low, high)]), len(expected), cut=False)


# --- search ---


def test_search_finds_coloured_lines_with_their_neighbours(tmp_path: Path) -> None:
    red = b"\x1b[31mer\x1b[1mror\x1b[0m: no\r"
    spool = spool_of(tmp_path, b"\n".join([b"a", b"b", red, b"c", b"error: yes", b"d", b"e"]))
    assert spool.search("^error: (no|yes)$", context=2) == [
        Match(3, red[:-1], (b"a", b"b"), (b"c", b"error: yes")),
        Match(5, b"error: yes", (red[:-1], b"c"), (b"d", b"e")),
    ]
    assert spool.search(re.compile(b"ERROR", re.IGNORECASE), limit=1) == [Match(3, red[:-1], (), ())]
    assert spool.search("x") == []
    assert spool.search("a", limit=0) == []


def test_the_last_match_within_the_limit_still_gets_what_follows(tmp_path: Path) -> None:
    spool = spool_of(tmp_path, b"hit\nhit\nhit\nend\n")
    assert spool.search("hit", limit=2, context=1) == [
        Match(1, b"hit", (), (b"hit",)),
        Match(2, b"hit", (b"hit",), (b"hit",)),
    ]


def test_titles_links_and_other_escape_strings_do_not_hide_text(tmp_path: Path) -> None:
    spool = spool_of(tmp_path, b"fo\x1b]0;title\x07o\x1b]8;;http://x\x1b\\ba\x1b(Br\x1b=!\n\x1b]8;;foobar\x07\n")
    assert [match.line_number for match in spool.search("foobar!?")] == [1]


@pytest.mark.parametrize("at", [0, 1, BLOCK - 4, BLOCK - 1, BLOCK, 2 * BLOCK - 2, 299_990])
def test_a_very_long_line_is_searched_to_its_end(tmp_path: Path, at: int) -> None:
    line = bytearray(b"x" * 300_000)
    line[at : at + 6] = b"needle"
    spool = spool_of(tmp_path, b"short\n" + line + b"\nneedle\n")
    for pattern in ("needle", "needle.*", "x?needlex"):
        found = spool.search(pattern)
        assert [match.line_number for match in found][:1] == [2]
        assert b"needle" in found[0].line
        assert len(found[0].line) <= 2 * BLOCK
    assert [match.line_number for match in spool.search("^needle")] == ([2, 3] if at == 0 else [3])
    assert [match.line_number for match in spool.search("needle$")] == [3]
    assert [match.line_number for match in spool.search("x$")] == [2]
    spool.close()


def test_line_numbers_count_from_the_oldest_kept(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "out", limit=100, buffer=0)
    for number in range(50):
        spool.write(b"line %03d\n" % number)
    found = spool.search("line 049")[0]
    assert spool.start > 0
    assert found.line_number == spool.lines(-1).first == spool.read(0, 1000)[1].count(b"\n")
    spool.close()


@pytest.mark.parametrize("pattern", ["(", "a{99999999999999999999}", "\ud800", "[z-a]"])
def test_a_broken_pattern_is_a_bad_request(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(BadRequest, match="is not a regular expression"):
        Spool(tmp_path / "out").search(pattern)


# --- the whole of it ---

steps = st.lists(
    st.one_of(
        st.binary(max_size=90),
        st.integers(0, 400),  # bytes enough to matter
        st.sampled_from(["flush", "compact", "close"]),
        st.tuples(st.integers(-5, 900), st.integers(0, 300)),
    ),
    max_size=40,
)


@settings(deadline=None)
@given(steps, st.sampled_from([0, 1, 5, 64, 200, 1000]), st.sampled_from([0, 1, 16, 100, 5000]))
def test_a_spool_is_a_string_whose_first_bytes_may_be_gone(
    steps: list[bytes | int | str | tuple[int, int]], limit: int, buffer: int
) -> None:
    text = b""
    with tempfile.TemporaryDirectory() as name:
        spool = Spool(Path(name) / "out", limit=limit, buffer=buffer)
        for step in steps:
            match step:
                case bytes():
                    spool.write(step)
                    text += step
                case int():
                    spool.write(bytes(n % 251 for n in range(step)))
                    text += bytes(n % 251 for n in range(step))
                case str():
                    getattr(spool, step)()
                case offset, size:
                    first = min(max(offset, spool.start), spool.end)
                    got = spool.read(offset, size)
                    assert got[1] == text[first : first + size]
                    assert got[0] == first or not got[1]
            assert (spool.end, spool.dropped, spool.lost, spool.error) == (len(text), spool.start, 0, None)
            assert sum(file.stat().st_size for file in Path(name).iterdir()) <= max(5, limit * 5 // 4)
        assert whole(spool) == text[spool.start :]
        assert spool.end - spool.start >= min(len(text), limit // 4)
        spool.close()
        assert whole(spool) == text[spool.start :]


def test_old_output_is_looked_for_once_an_hour_and_not_with_each_command(tmp_path: Path) -> None:
    """What terminals long gone kept is removed, however many there are now."""

    def aged(name: str) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        os.utime(folder, (0, 0))
        return folder

    kept_here = Settings(spool_directory=tmp_path)
    first = aged("first")
    Spools("t1.1.00", kept_here).new(1)
    second = aged("second")
    Spools("t2.1.00", kept_here).new(1)
    assert (first.exists(), second.exists()) == (False, True)
