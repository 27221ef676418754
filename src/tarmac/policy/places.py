"""Where a path of a command lies: in the workspace, harmless, secret, a disk, somewhere else.

Names decide what is secret. The disk decides what is inside, through symlinks and `..`; where nothing exists, the name
does.
"""

import fnmatch
import os
import re
import stat
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from tarmac.errors import PlaceFailed
from tarmac.file_system import LONGEST_PATH, FileSystem, follow
from tarmac.policy.budget import Budget, current, elsewhere, note, once, spend
from tarmac.policy.files import IGNORE_FILES, Files, PathStatus

Kind = Literal[
    "workspace", "harmless", "listable", "secret", "own", "disk", "root", "system", "home", "temporary", "outside"
]

_SECRET_NAME = re.compile(
    r"""^(
      \.env(\.(?!example$|sample$|template$|dist$|defaults?$|schema$)[\w.-]+)?
    | id_(rsa|dsa|ecdsa|ed25519)(_\w+)?  | \.?netrc | \.pgpass | \.git-credentials | \.npmrc | \.pypirc | \.htpasswd
    | .*\.(pem|p12|pfx|jks|keystore|kdbx|ppk|ovpn|asc) | (.*[-_.])?(private|server|tls|ssl|client)[-_.]?key | .*\.key
    | (.*[-_.])?credentials(\.(json|ya?ml|toml|ini|csv))? | (.*[-_.])?secrets?(\.(json|ya?ml|toml|ini|env|txt))?
    | service[-_]?account.*\.json | g?shadow-? | sudoers | master\.key | \.vault[-_]pass(word)?
    | .*_history | \.my\.cnf | .*\.keychain(-db)? | \.?[\w-]*[-_]?token(\.(txt|json))?
    | authorized_keys | kubeconfig | known_hosts | wp-config\.php
    | passwords?(\.(txt|json|ya?ml|csv))? | .*adminsdk.*\.json
    )$""",
    re.VERBOSE | re.IGNORECASE,
)
LONGEST_NAME = 255  # characters: no file has a longer one
_SECRET_FOLDER = re.compile(r"^(\.ssh|\.gnupg|\.aws|\.azure|\.kube|\.docker|\.password-store|sudoers\.d)$")
_SECRET_PATH = re.compile(
    r"^/(var/)?run/secrets(/|$)|^/etc/ssl/private(/|$)|/\.config/gcloud/"
    r"|^/proc/([0-9]+|self|thread-self)/(environ|mem|maps|fd|cmdline)|^/(dev/(k?mem|port)|proc/kcore)"
)
_HARMLESS = re.compile(
    r"""^/(
      dev/(null|stdin|stdout|stderr|tty|fd/[0-9]+)
    | etc/([\w-]*release|[\w-]*version|hostname|hosts|timezone|issue|shells|localtime)
    | proc/(cpuinfo|meminfo|version|loadavg|uptime|filesystems|mounts|stat|partitions|swaps)
    | proc/sys/(kernel|fs)/[\w/-]+
    | sys/(class|devices|block)/(net|thermal|power_supply|system/cpu)?.*
    | usr/(local/)?(share|include|lib|lib64|libexec|src|bin|sbin)(/.*)? | lib(64)?(/.*)? | s?bin(/.*)?
    )$""",
    re.VERBOSE,
)
_LISTABLE = re.compile(r"^/$|^/(etc|usr|var|opt|tmp|proc|sys|dev|mnt|media|srv|boot|run|snap)(/.*)?$|^/home$|^/Users$")
_SYSTEM = re.compile(
    r"^/(etc|usr|bin|sbin|lib|lib32|lib64|boot|var|opt|srv|proc|sys|dev|run|System|Library|Applications)(/|$)"
)
_DISK = re.compile(
    r"^/dev/((sd|hd|vd|xvd)[a-z]+[0-9]*|nvme[0-9]+(n[0-9]+(p[0-9]+)?)?|mmcblk[0-9]+(p[0-9]+)?|r?disk[0-9]+(s[0-9]+)?|"
    r"md[0-9/]+|dm-[0-9]+|loop[0-9]+|mapper/.+|disk/.+|sr[0-9]+|(sd|hd|vd|nvme)[\w*?\[\]\0-]*)$"
)
_STREAM = re.compile(r"^/+(dev/(stdin|stdout|stderr|tty|fd/[0-9]+)|proc/(self|thread-self)(/.*)?)$")
_TEMPORARY = re.compile(r"^/(var/)?tmp(/|$)|^/dev/shm(/|$)")
_OWN = re.compile(r"(^|/)(\.config/tarmac|\.local/state/tarmac|\.local/share/tarmac|\.tarmac)(/|$)")


@dataclass(frozen=True, slots=True)
class Place:
    """A path, resolved, and what kind of place it is."""

    path: str  # absolute, symlinks followed where they exist
    kind: Kind
    shown: str  # for a person: relative inside the workspace

    @property
    def inside(self) -> bool:
        return self.kind == "workspace"

    @property
    def changed(self) -> Kind:
        """Its kind for a command that would change it: what is harmless to read is the system's, except for streams."""
        return "system" if self.kind == "harmless" and not self.path.startswith("/dev/") else self.kind


@dataclass(frozen=True, slots=True)
class Ground:
    """Where a command stands: its directory, the workspace around it, the home of its user."""

    cwd: str
    workspace: str  # resolved
    home: str = ""  # resolved; it may lie anywhere, also below /var or /tmp

    @classmethod
    def of(cls, cwd: Path, workspace: Path, *, home: str = "") -> "Ground":
        there = _real(home) if os.path.isabs(home) else ""
        return cls(_real(str(cwd.absolute())), _real(str(workspace.absolute())), there if there != "/" else "")

    def moved(self, directory: str) -> "Ground":
        return replace(self, cwd=_real(os.path.join(self.cwd, directory)))

    @property
    def inside(self) -> bool:
        """Whether the directory itself is in the workspace."""
        return _below(self.cwd, self.workspace)

    def look(self, files: Files, text: str) -> PathStatus:
        """What a file named from here means: outside, hidden, protected, a credential."""
        spend()
        note(os.path.join(self.cwd, text))
        folder = os.path.dirname(os.path.normpath(os.path.join(self.cwd, text)))
        for _ in range(8):  # ignore files may lie in any folder up to the workspace
            for own in IGNORE_FILES:
                note(f"{folder}/{own}")
            if folder in (self.workspace, "/", ""):
                break
            folder = os.path.dirname(folder)
        return files.look(text, cwd=self.cwd, workspace=self.workspace)

    def locate(self, text: str) -> Place:
        """What `text` names, seen from here. `~` is somebody's home, an UNKNOWN piece ends what is known."""
        if text.startswith("~"):
            kind: Kind = "secret" if is_secret(text) else "own" if _OWN.search(text) else "home"
            return Place(text, kind, text)
        joined = os.path.join(self.cwd, text)
        path = _real(joined)
        lexical = os.path.normpath(joined)
        return Place(path, self._kind(path, lexical), self._shown(path, text))

    def _kind(self, path: str, lexical: str) -> Kind:
        if path == "/" or _strip_pattern(lexical) == "/":
            return "root"
        if _DISK.match(path) or _DISK.match(lexical):
            return "disk"
        if _OWN.search(path) or _OWN.search(lexical):
            return "own"
        if is_secret(path) or is_secret(lexical):
            return "secret"
        if _below(path, self.workspace):
            return "workspace"
        if _HARMLESS.match(path):
            return "harmless"
        if self.home and _below(path, self.home):
            return "home"
        if _TEMPORARY.match(path):
            return "temporary"
        if _SYSTEM.match(path):
            return "system"
        if re.match(r"^/(home|Users)/[^/]+|^/root(/|$)", path):
            return "home"
        return "outside"

    def _shown(self, path: str, text: str) -> str:
        if _below(path, self.workspace) and self.workspace != "/":
            return os.path.relpath(path, self.workspace) if path != self.workspace else "the workspace itself"
        return path if os.path.isabs(text) or ".." in text.split("/") else text


def listable(place: Place) -> bool:
    """Whether its name, size and dates may be shown: nobody's home, no secrets."""
    return place.kind in ("workspace", "harmless") or (
        place.kind in ("system", "temporary", "root", "disk") and _LISTABLE.match(place.path) is not None
    )


def is_secret(path: str) -> bool:
    """Whether a path is named like credentials."""
    parts = path.split("/")
    return (
        (len(parts[-1]) <= LONGEST_NAME and _SECRET_NAME.match(parts[-1]) is not None)
        or _SECRET_PATH.match(path) is not None
        or any(_SECRET_FOLDER.match(part) for part in parts)
    )


def _strip_pattern(path: str) -> str:
    """`/*` and `/.` and `/{a,b}` are all of `/`."""
    while path.startswith("/"):
        rest, _, last = path.rpartition("/")
        if not (last in (".", ".*") or (last and not last.strip("*")) or (last[:1] == "{" and last[-1:] == "}")):
            break
        path = rest
    return path or "/"


def _real(path: str) -> str:
    spend()
    # The kernel follows no path that long, and for each process the streams lead elsewhere: ours say nothing.
    streams = ("dev" in path or "proc" in path) and _STREAM.match(os.path.normpath(path))
    if streams or len(path) > LONGEST_PATH:
        return os.path.normpath(path).replace("//", "/", 1)
    note(path)
    return once("real", path, _resolved)


def _resolved(path: str) -> str:
    """As os.path.realpath has it; its folder, which other names of the line are in as well, is followed once."""
    if elsewhere() is not None:
        return _followed(path)
    folder, _, name = path.rpartition("/")
    if not folder or "\0" in path or "//" in path or name in ("", ".", ".."):
        return _followed(path)
    here = f"{once('real', folder, _followed).rstrip('/')}/{name}"
    return _followed(here) if os.path.islink(here) else here


def _followed(path: str) -> str:
    try:
        system = elsewhere()
        real = os.path.realpath(path) if system is None else follow(path, system=system)
    except PlaceFailed:
        raise
    except (OSError, ValueError):
        real = os.path.normpath(path)
    return real[1:] if real.startswith("//") else real


def _below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder if folder.endswith("/") else folder + "/")


_MAGIC = re.compile(r"[*?[]")


def expand(pattern: str, cwd: str, *, hidden: bool = False) -> list[str]:
    """What `pattern`, said in `cwd`, matches; with `hidden`, names that begin with a dot as well."""
    budget = current()
    key = (cwd, pattern, hidden)
    if key not in budget.found:
        budget.found[key] = _expand(pattern, cwd, hidden=hidden, budget=budget)
    budget.spend(looks=len(budget.found[key]) // 10)  # found before, but going through them again takes time, too
    return list(budget.found[key])


def _expand(pattern: str, cwd: str, *, hidden: bool, budget: Budget) -> list[str]:
    root = "/" if pattern.startswith("/") else ""
    found = [root]
    parts = [part for part in pattern.split("/") if part]
    if pattern.endswith("/"):
        parts.append("")
    for number, part in enumerate(parts):
        if not _MAGIC.search(part):
            found = [os.path.join(each, part) for each in found]
            if number == len(parts) - 1:
                found = [each for each in found if _exists(os.path.join(cwd, each), budget)]
            continue
        matches = re.compile(fnmatch.translate(part)).match
        dotted = hidden or part.startswith(".")
        last = number == len(parts) - 1
        deeper: list[str] = []
        for each in found:
            for name, folder in _names(os.path.join(cwd, each), budget):
                if (dotted or not name.startswith(".")) and (last or folder) and matches(name):
                    deeper.append(os.path.join(each, name))
        found = deeper
    return found


def _names(folder: str, budget: Budget) -> list[tuple[str, bool]]:
    """What is in a folder, and which of it may be a folder; nothing when it can't be read."""
    budget.spend(folders=1)
    names: list[tuple[str, bool]] = []
    if budget.system.place:
        return _names_elsewhere(folder, budget)
    try:
        with os.scandir(folder or ".") as entries:
            for entry in entries:
                names.append((entry.name, entry.is_symlink() or entry.is_dir(follow_symlinks=False)))
                if len(names) % 64 == 0:
                    budget.spend(names=64)
    except OSError:
        return []
    budget.spend(names=len(names) % 64)
    return names


def _names_elsewhere(folder: str, budget: Budget) -> list[tuple[str, bool]]:
    try:
        found = budget.system.entries(folder or "/")
    except PlaceFailed:
        raise
    except OSError:
        return []
    budget.spend(names=len(found))
    return [(name, is_folder or _is_link(f"{folder.rstrip('/')}/{name}", budget.system)) for name, is_folder in found]


def _is_link(path: str, system: FileSystem) -> bool:
    try:
        return stat.S_ISLNK(system.lstat(path).st_mode)
    except FileNotFoundError:
        return False


def _exists(path: str, budget: Budget) -> bool:
    budget.spend(looks=1)
    if not budget.system.place:
        return os.path.lexists(path)
    try:
        budget.system.lstat(path)
    except PlaceFailed:
        raise
    except (OSError, ValueError):
        return False
    return True
