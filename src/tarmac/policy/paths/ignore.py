"""`.tarmacignore`, and Roo Code's `.rooignore`: files that agents don't see. The syntax is gitignore's.

IgnoreFiles.why(root, path) → which line of which file hides it, or ""

One may lie in any folder, and speaks of what is below it. Unlike git's, a file further down can hide more, but never
show again what one above it hides; so whoever reads the one at the top knows. One that can't be read hides everything
below it: an error means no.
"""

import os
import stat
from itertools import accumulate, product
from pathlib import Path

from tarmac.errors import PlaceFailed
from tarmac.file_system import LOCAL, FileSystem, follow

NAMES = (".tarmacignore", ".rooignore")
MOST_BYTES = 1 << 20
_Signature = tuple[int, int, int, int]


def _why(error: OSError) -> str:
    """Why a file can't be read. That of a place that fails is no such reason."""
    if isinstance(error, PlaceFailed):
        raise error
    return os.strerror(error.errno).lower() if error.errno else str(error)


class _Spec:
    """One file, read."""

    def __init__(self, text: str, *, ignore_case: bool) -> None:
        self._lines = [line for line in text.splitlines() if line]
        self._ignore_case = ignore_case
        from pathspec import GitIgnoreSpec  # 15 ms that only those pay who hide something

        self._spec = GitIgnoreSpec.from_lines(self._folded(line) for line in self._lines)

    def _folded(self, text: str) -> str:
        return text.lower() if self._ignore_case else text

    def line(self, path: str, *, is_folder: bool) -> str:
        """The line that hides `path`; empty when none does. The last that speaks of it counts.

        A pattern of pathspec also matches all below what it names. Here, as in git, it speaks of what it names only
        (`!a` shows the folder a, and not a/b if another line hides that): what is below is asked about by its own name.
        """
        name = self._folded(path) + "/" * is_folder
        for line, pattern in zip(reversed(self._lines), reversed(list(self._spec.patterns)), strict=True):
            found = pattern.regex.match(name) if pattern.include is not None and pattern.regex else None
            if found and found.groupdict().get("ps_d") is not None and found.end("ps_d") < len(name):
                found = None
            if found:
                return line.strip() if pattern.include else ""
        return ""


class IgnoreFiles:
    """Those on the way to a file, read again when they change."""

    def __init__(self, *, ignore_case: bool = False, system: FileSystem = LOCAL) -> None:
        self._ignore_case = ignore_case
        self._system = system
        self._known: dict[str, tuple[_Signature, _Spec | str]] = {}

    def why(self, root: str, path: str) -> str:
        """Why the file at `path`, seen from `root`, is hidden; empty when it is not."""
        parts = [each for each in path.split("/") if each not in ("", ".")]
        folders = list(accumulate(parts[:-1], lambda above, name: f"{above}/{name}", initial=root.rstrip("/")))
        for (depth, folder), own in product(enumerate(folders), NAMES):
            spec = self._read(f"{folder}/{own}")
            if spec is None:
                continue
            shown = "/".join([*parts[:depth], own])
            if isinstance(spec, str):
                return f"{shown} can't be read ({spec}), so all below it counts as hidden"
            # Each folder on the way is asked about, as git does: below a hidden one nothing can be shown again.
            for end in range(depth + 1, len(parts) + 1):
                last = end == len(parts)
                name = "/".join(parts[depth:end])
                line = spec.line(name, is_folder=True) or (last and spec.line(name, is_folder=False))
                if line:
                    return f"{shown} hides it ({line})"
        return ""

    def _read(self, file: str) -> _Spec | str | None:
        """What it says; why it can't be read; None when there is none."""
        try:
            found = self._system.lstat(file)
        except (FileNotFoundError, NotADirectoryError):
            self._known.pop(file, None)
            return None
        except OSError as error:
            return _why(error)
        try:
            found = self._system.stat(file) if stat.S_ISLNK(found.st_mode) else found
        except (FileNotFoundError, NotADirectoryError):
            return "it leads nowhere"
        except OSError as error:
            return _why(error)
        signature = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        known = self._known.get(file)
        if known is None or known[0] != signature:
            known = self._known[file] = (signature, self._parsed(file, found))
        return known[1]

    def _parsed(self, file: str, found: os.stat_result) -> _Spec | str:
        if not stat.S_ISREG(found.st_mode):
            return "it is no file"
        if found.st_size > MOST_BYTES:
            return "it is too large"
        try:
            there = Path(follow(file, system=self._system))
            text = (self._system.read(there, most=MOST_BYTES) or b"").decode("utf-8-sig")
            return _Spec(text, ignore_case=self._ignore_case)
        except OSError as error:
            return _why(error)
        except ValueError:  # not UTF-8, or a line that is no pattern
            return "a line in it makes no sense"
