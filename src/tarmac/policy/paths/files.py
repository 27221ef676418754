"""Which file a name means, and what is special about it: outside the workspace, hidden, protected, a credential.

look(path, cwd, workspace) → PathStatus          for a word of a command: a few system calls, and never an exception
judge_file(action, …)      → Verdict       for a file tool

A name is judged twice: as it is written, and as the kernel would follow it, through every symlink and `..`. So neither
a link to a protected file nor a protected name that is a link gets by. What can't be followed (a loop, a folder that
may not be entered) is trouble, and trouble means no. Directories that don't exist are judged by their names.

Whoever asks must use `PathStatus.path` at once: between the look and the use a name may come to mean another file.
"""

import os
import re
import stat
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal

from tarmac.errors import PlaceFailed
from tarmac.file_system import LOCAL, LONGEST_PATH, FileSystem, follow, is_folder
from tarmac.policy.actions import ReadFile, WriteFile
from tarmac.policy.budget import once
from tarmac.policy.paths.ignore import IgnoreFiles
from tarmac.policy.paths.names import Names
from tarmac.policy.rule import PolicySettings, Rule
from tarmac.policy.verdict import Decision, Risk, Verdict

_STREAMS = re.compile(r"/dev/(?:stdin|stdout|stderr|fd/[0-2])")
_OF_ITSELF = re.compile(r"/proc/self/(status|limits|cgroup|mountinfo|mounts|stat|comm)")
# Here programs share one copy of a file among many folders (pnpm, uv, cargo): another name for it is no trick.
STORES = frozenset(["node_modules", "site-packages", ".venv", "venv", "target", ".git", ".pnpm-store"])


@dataclass(frozen=True, slots=True, kw_only=True)
class PathStatus:
    """What a name means. Each of the texts says why; empty: it is not so."""

    path: Path  # what it leads to, through all symlinks
    inside: bool  # in the workspace, by both its names
    exists: bool = False
    ignored: str = ""
    protected: str = ""
    credential: str = ""
    public: str = ""  # outside, but no secret to anybody
    linked: str = ""  # a hard link: the same file may have a name elsewhere
    special: str = ""  # a device, a pipe, a socket
    own: str = ""  # Tarmac's own folder
    trouble: str = ""  # it can't be known: that means no

    @property
    def unread(self) -> str:
        """Why it may not be read without asking; empty when it may."""
        outside = "" if self.inside or self.public else "it is outside of the workspace"
        special = "" if self.public else self.special
        return self.trouble or self.own or self.ignored or self.credential or special or outside or self.linked

    @property
    def unwritten(self) -> str:
        """Why it may not be changed without asking, even where writing is approved; empty when it may."""
        outside = "" if self.inside else "it is outside of the workspace"
        known = self.trouble or self.own or self.ignored or self.protected or self.credential
        return known or self.special or outside or self.linked


class Files:
    """Looks at names. It remembers the ignore files it has read, and sees when they change."""

    def __init__(
        self, *, own: Sequence[Path] = (), ignore_case: bool | None = None, system: FileSystem = LOCAL
    ) -> None:
        self.system = system
        self._given = own
        self._own = tuple(map(os.fspath, own))
        self._ignore_case = sys.platform in ("darwin", "win32") if ignore_case is None else ignore_case
        self._ignore = IgnoreFiles(ignore_case=self._ignore_case, system=system)

    @property
    def elsewhere(self) -> bool:
        """Whether the files are at another place. Then a look waits for it, and must be made in a thread."""
        return bool(self.system.place)

    def afresh(self) -> "Files":
        """The same, with nothing remembered of another place."""
        if not self.elsewhere:
            return self
        return Files(own=self._given, ignore_case=self._ignore_case, system=self.system.afresh())

    def look(self, path: str | Path, *, cwd: str | Path, workspace: str | Path) -> PathStatus:
        """What `path`, said in `cwd`, means for an agent that works in `workspace`."""
        try:
            return self._look(os.fspath(path), os.fspath(cwd), os.fspath(workspace))
        except PlaceFailed:  # that says nothing of the path
            raise
        except (OSError, ValueError) as error:
            why = os.strerror(error.errno).lower() if isinstance(error, OSError) and error.errno else str(error)
            return PathStatus(path=Path(path), inside=False, trouble=f"nobody can tell what it leads to: {why}")

    def _look(self, path: str, cwd: str, workspace: str) -> PathStatus:
        if not path:
            raise ValueError("it has no name")
        given = os.path.join(workspace, cwd, path)  # noqa: PTH118
        if not given.startswith("/"):
            raise ValueError("the workspace has no full path")
        said = os.path.normpath(given)
        if _STREAMS.fullmatch(said):  # whatever is behind them now is not what will be
            return PathStatus(path=Path(said), inside=False, exists=True, public="it is a stream of the program itself")
        if given == said and _OF_ITSELF.fullmatch(said):
            return PathStatus(
                path=Path(said), inside=False, exists=True, public="it tells of the program that reads it"
            )
        root = once("followed", workspace, self._follow)
        below = given.startswith(workspace.rstrip("/") + "/") and len(given) <= LONGEST_PATH
        there = follow(given[len(workspace) :], start=root, system=self.system) if below else self._follow(given)
        # As written it may be under the workspace's other name; outside of it a name counts in full.
        written = self._below(said, workspace) or self._below(said, root)
        led = self._below(there, root)
        names = list(dict.fromkeys((led or there, written or said)))
        local = list(dict.fromkeys(each for each in (led, written) if each is not None))
        special, linked, exists = _kind(there, self.system)
        return PathStatus(
            path=Path(there),
            inside=led is not None,
            exists=exists,
            ignored=next((why for each in local if (why := self._ignore.why(root, each))), ""),
            protected=_why("protected", names),
            credential=_why("credential", [each for each in names if not _names("example").why(each)]),
            public=_why("public", [there]) if led is None else "",
            linked=linked if STORES.isdisjoint(names[0].split("/")) else "",
            special=special,
            own=self._own_folder(said, there),
        )

    def _real(self, path: str) -> str:
        return self._follow(path) if self.elsewhere else os.path.realpath(path)

    def _follow(self, path: str) -> str:
        return follow(path, system=self.system)

    def _below(self, path: str, root: str) -> str | None:
        """`path` as seen from `root`, "." for itself; None when it is elsewhere. By whole parts, never by text."""
        a, b = (path.lower(), root.lower()) if self._ignore_case else (path, root)
        if a == b:
            return "."
        b = b.rstrip("/") + "/"
        return path[len(b) :] if a.startswith(b) else None

    def _own_folder(self, *paths: str) -> str:
        for folder in self._own:
            for name in {folder, once("own", folder, self._real)}:
                if any(self._below(path, name) is not None for path in {*paths}):
                    return "it belongs to Tarmac itself"
        return ""

    def judge(self, action: ReadFile | WriteFile, *, workspace: Path, settings: PolicySettings) -> Verdict:
        """May this file be read, or written, by a tool? A relative path is meant from the workspace."""
        seen = self.look(action.path, cwd=workspace, workspace=workspace)
        if action.leads_to not in (None, seen.path) and not seen.trouble:
            seen = replace(seen, trouble="it leads to another file than a moment ago")
        reading = isinstance(action, ReadFile)
        new = not seen.exists if isinstance(action, ReadFile) or action.new is None else action.new
        decision, risk, reason, rule = _read(seen, settings) if reading else _written(seen, settings)
        deletes = isinstance(action, WriteFile) and action.deletes
        verb = "reads" if reading else "deletes" if deletes else "makes" if new else "changes"
        what = "folder" if reading and is_folder(str(seen.path), self.system) else "file"
        place = "" if seen.inside else ", outside of the workspace"
        return Verdict(
            decision=decision,
            risk=risk,
            reason=reason,
            part=str(action.path),
            explanation=f"{verb} the {what} {seen.path}{place}",
            rule=rule,
            personal=reason if decision == "ask" and rule in (Rule.FILE_PROTECTED, Rule.FILE_CREDENTIAL) else "",
        )


_Answer = tuple[Decision, Risk, str, str]


def _read(seen: PathStatus, settings: PolicySettings) -> _Answer:
    match seen:
        case PathStatus(trouble=why) if why:
            return "deny", "high", why, "file.trouble"
        case PathStatus(own=why) if why:
            return "deny", "high", why, "file.own"
        case PathStatus(ignored=why) if why:
            return "deny", "medium", why, "file.ignored"
        case PathStatus(special=why, public="") if why:
            return "deny", "medium", why, "file.special"
        case PathStatus(credential=why) if why:
            return "ask", "high", why, Rule.FILE_CREDENTIAL
        case PathStatus(inside=False, public=""):
            return "ask", "medium", "it is outside of the workspace", "file.outside"
        case PathStatus(linked=why) if why:
            return "ask", "medium", why, "file.linked"
    if settings.auto_approve_read:
        return "allow", "low", "reading is approved", "file.read"
    return "ask", "low", "reading is not approved by itself", "file.read"


def _written(seen: PathStatus, settings: PolicySettings) -> _Answer:
    match seen:
        case PathStatus(trouble=why) if why:
            return "deny", "high", why, "file.trouble"
        case PathStatus(own=why) if why:
            return "deny", "critical", why, "file.own"
        case PathStatus(ignored=why) if why:
            return "deny", "medium", why, "file.ignored"
        case PathStatus(special=why) if why:
            return "deny", "high", why, "file.special"
        case PathStatus(protected=why) if why:
            return "ask", "high", f"it is protected: {why}", Rule.FILE_PROTECTED
        case PathStatus(credential=why) if why:
            return "ask", "high", why, Rule.FILE_CREDENTIAL
        case PathStatus(linked=why) if why:
            return "ask", "medium", why, "file.linked"
        case PathStatus(inside=False):
            if settings.auto_approve_write_outside:
                return "allow", "high", "writing outside of the workspace is approved", "file.outside"
            return "ask", "high", "it is outside of the workspace", "file.outside"
    if settings.auto_approve_write:
        return "allow", "medium", "writing in the workspace is approved", "file.write"
    return "ask", "medium", "writing is not approved by itself", "file.write"


def _kind(path: str, system: FileSystem) -> tuple[str, str, bool]:
    """Why it is special, why it may have another name, and whether it is there at all."""
    try:
        found = system.lstat(path)
    except FileNotFoundError:
        return "", "", False
    if stat.S_ISREG(found.st_mode):
        return "", "it has another name as well (a hard link), and may be another file's" * (found.st_nlink > 1), True
    return "" if stat.S_ISDIR(found.st_mode) else "it is a device, a pipe or a socket", "", True


@cache
def _names(kind: Literal["protected", "credential", "example", "public"]) -> Names:
    from tarmac.policy.paths import names as listed

    return Names(
        {
            "protected": listed.PROTECTED,
            "credential": listed.CREDENTIAL,
            "example": listed.EXAMPLE,
            "public": listed.PUBLIC,
        }[kind]
    )


def _why(kind: Literal["protected", "credential", "public"], paths: Sequence[str]) -> str:
    names = _names(kind)
    return next((why for each in paths if (why := names.why(each))), "")


def protected_name(path: str) -> str:
    """Why something of this name is protected, wherever it is; empty when it is not."""
    return _names("protected").why(path)


def credential_name(name: str) -> str:
    """Why a file of this name may hold credentials, wherever it is; empty when it may not."""
    return "" if _names("example").why(name) else _names("credential").why(name)


# For those who keep no Files of their own

_shared = Files()


def look(path: str | Path, *, cwd: Path, workspace: Path) -> PathStatus:
    """What `path`, said in `cwd`, means for an agent that works in `workspace`."""
    return _shared.look(path, cwd=cwd, workspace=workspace)
