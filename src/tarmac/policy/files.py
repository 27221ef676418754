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
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate, product
from pathlib import Path
from typing import Literal, NamedTuple

from tarmac.errors import PlaceFailed
from tarmac.file_system import LOCAL, LONGEST_PATH, FileSystem, follow, is_folder
from tarmac.policy.budget import once
from tarmac.policy.verdict import Decision, PolicySettings, ReadFile, Risk, Rule, Verdict, WriteFile


class _Name(NamedTuple):
    rank: int
    parts: tuple[str, ...]
    rooted: bool
    why: str


class Names:
    """One list, by the first part of each name; those that begin with a pattern are tried one by one."""

    def __init__(self, listed: Mapping[str, str]) -> None:
        self._plain: dict[str, list[_Name]] = {}
        self._patterns: list[_Name] = []
        for rank, (why, names) in enumerate(listed.items()):
            for name in _folded(names).split():
                parts = tuple(name.removeprefix("/").split("/"))
                made = _Name(rank, parts, name.startswith("/"), why)
                if "*" in parts[0]:
                    self._patterns.append(made)
                else:
                    self._plain.setdefault(parts[0], []).append(made)
        # What begins or ends like none of the patterns needs no look at each.
        firsts = [each.parts[0] for each in self._patterns]
        self._heads = tuple(head for each in firsts if (head := each.partition("*")[0]))
        self._tails = tuple(each.rpartition("*")[2] for each in firsts if each.startswith("*"))

    def why(self, path: str) -> str:
        """Why a path with one of the names in it is more than a file; empty when none is."""
        parts = _folded(path).split("/")
        rooted = path.startswith("/")
        if rooted:
            del parts[0]
        for place, part in enumerate(parts):
            found = self._plain.get(part, ())
            if part.startswith(self._heads) or part.endswith(self._tails):
                found = sorted((*found, *self._patterns))
            for each in found:
                if _matches(each, parts, place, rooted=rooted):
                    return each.why
        return ""


def _matches(name: _Name, parts: Sequence[str], place: int, *, rooted: bool) -> bool:
    if name.rooted and not (rooted and place == 0):
        return False
    here = parts[place : place + len(name.parts)]
    return len(here) == len(name.parts) and all(map(_fits, name.parts, here))


def _fits(pattern: str, part: str) -> bool:
    """Whether a name matches a pattern in which only `*` is special."""
    if "*" not in pattern:
        return pattern == part
    head, *middle, tail = pattern.split("*")
    if not (part.startswith(head) and part.endswith(tail) and len(part) >= len(head) + len(tail)):
        return False
    at = len(head)
    for each in middle:
        at = part.find(each, at, len(part) - len(tail))
        if at < 0:
            return False
        at += len(each)
    return True


def _folded(path: str) -> str:
    """The name as a file system reads it that ignores case and invisible letters: `.GIT`, `.g\u200cit`."""
    if path.isascii():
        return path.lower()
    return "".join(
        each for each in unicodedata.normalize("NFKC", path).casefold() if unicodedata.category(each) != "Cf"
    )


# ── A change is always asked about, also when they don't exist yet.
PROTECTED = {
    "it configures Tarmac": ".tarmac .tarmacignore",
    "it configures an agent": """
        .claude .claude.json .cursor .roo .roo-code .roomodes .cline .windsurf .kilocode .kiro .codex .gemini
        .opencode opencode.json* .continue .continuerc.json .aider* .amazonq .junie .openhands .goose*
    """,
    "agents follow what it says": """
        agents.md agent.md claude.md claude.local.md gemini.md copilot-instructions.md .cursorrules .roorules*
        .clinerules* .windsurfrules
    """,
    "it says which files agents may not see": """
        .rooignore .rooprotected .clineignore .cursorignore .geminiignore .aiignore
    """,
    "it names programs that agents start": ".mcp.json mcp.json mcp_settings.json mcp_servers.toml",
    "hooks and settings in it run programs, and it holds the history": ".git .hg .svn .jj",
    "it can make git run programs, or fetch code from elsewhere": """
        .gitmodules .gitattributes .gitconfig .config/git .husky .pre-commit-config.yaml lefthook.y*ml
        .lefthook.y*ml
    """,
    "it runs programs on the project's servers": ".github .gitlab-ci.yml .circleci .travis.yml",
    "an editor runs what it says": """
        .vscode .idea .zed .fleet .devcontainer .devcontainer.json *.code-workspace .exrc .vimrc .nvimrc .nvim.lua
        .dir-locals.el .emacs* .config/nvim
    """,
    "shells run what it says": """
        .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .inputrc .zshrc .zshenv .zprofile
        .zlogin .zlogout .config/fish .envrc .mise.toml mise.toml
    """,
    "what it names starts automatically": ".config/autostart .config/systemd Library/LaunchAgents",
    "it can make ripgrep run a program": ".ripgreprc",
    "it says who may log in, and how": ".ssh",
}

# ── Reading is always asked about: what is read goes to a model.
CREDENTIAL = {
    "it holds keys": ".ssh .gnupg *.jks *.keystore /etc/ssl/private /etc/ssh/ssh_host_*",
    "it may be a private key": "id_rsa* id_dsa* id_ecdsa* id_ed25519* *.pem *.key *.p12 *.pfx",
    "it holds passwords": """
        *.kdbx .password-store .netrc _netrc .pgpass .my.cnf .mylogin.cnf .htpasswd .git-credentials
        .config/git/credentials .vault_pass* wp-config.php .local/share/keyrings Library/Keychains /etc/shadow*
        /etc/gshadow* /etc/sudoers*
    """,
    "it often holds secrets": """
        .env .env.* *.env .envrc *.tfstate *.tfstate.backup *.tfvars secrets.y*ml secrets.json secrets.toml
        credentials.json client_secret*.json service-account*.json
    """,
    "it may hold a token": """
        .npmrc .yarnrc.yml .pypirc .gem/credentials .cargo/credentials* .config/gh .config/hub .config/glab-cli
        .docker/config.json .dockercfg .terraform.d/credentials* .terraformrc .vault-token .claude.json
        .codex/auth.json .claude/.credentials.json
    """,
    "it holds credentials": """
        .aws .azure .oci .kube .config/gcloud .config/rclone .config/op /etc/kubernetes /run/secrets
        /var/run/secrets
    """,
    "it holds passwords and sessions": """
        .mozilla .config/google-chrome .config/chromium .config/BraveSoftware
    """,
    "it holds what somebody typed": ".*_history fish_history",
    "it shows the inside of a running process": """
        /proc/*/environ /proc/*/mem /proc/*/fd /proc/*/root /proc/*/cwd /proc/kcore /dev/mem /dev/kmem
    """,
}

# ── What looks like a credential and is made to be shared.
EXAMPLE = {
    "it is an example": """
        .env.example .env.sample .env.template .env.dist .env.defaults *.env.example example.env sample.env
    """,
    "it holds public keys": "*.pub .ssh/known_hosts",
}

# ── Outside of the workspace, and no secret to whoever may use this machine at all.
PUBLIC = {
    "it belongs to an installed program": "/usr /bin /sbin /lib* /opt/homebrew /nix/store",
    "it holds facts about the system": """
        /etc/*-release /etc/*_version /etc/hostname /etc/hosts /etc/resolv.conf /etc/timezone /etc/localtime
        /etc/shells /etc/services /etc/protocols /etc/issue* /etc/motd /etc/mime.types /proc/cpuinfo /proc/meminfo
        /proc/version /proc/uptime /proc/loadavg /proc/filesystems /proc/swaps /proc/stat /proc/partitions
        /proc/mounts /proc/*/status /proc/*/limits /proc/*/cgroup /proc/*/mountinfo /proc/*/mounts /proc/*/stat
        /proc/*/comm /proc/net/dev /proc/net/route /proc/net/tcp /proc/sys/kernel /proc/sys/fs /proc/sys/vm
        /sys/class /sys/devices /sys/block /sys/fs/cgroup
    """,
    "it holds messages of the system's programs": """
        /var/log/syslog* /var/log/messages* /var/log/kern.log* /var/log/dmesg* /var/log/dpkg.log* /var/log/apt
        /var/log/nginx /var/log/apache2 /var/log/httpd /var/log/supervisor /var/log/daemon.log* /var/log/boot.log*
        /var/log/cloud-init* /var/log/alternatives.log*
    """,
    "it holds nothing of anybody": "/dev/null /dev/zero /dev/full /dev/urandom /dev/random",
}


IGNORE_FILES = (".tarmacignore", ".rooignore")
MOST_BYTES = 1 << 20
_Signature = tuple[int, int, int, int]


def _unreadable(error: OSError) -> str:
    """Why a file can't be read. Raises PlaceFailed when the place fails: that says nothing of the file."""
    if isinstance(error, PlaceFailed):
        raise error
    return os.strerror(error.errno).lower() if error.errno else str(error)


class _Spec:
    """One ignore file that was read."""

    def __init__(self, text: str, *, ignore_case: bool) -> None:
        self._lines = [line for line in text.splitlines() if line]
        self._ignore_case = ignore_case
        from pathspec import GitIgnoreSpec  # takes 15 ms, which only workspaces with ignore files need

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
    """The ignore files in the folders above a file. They are read again when they change."""

    def __init__(self, *, ignore_case: bool = False, system: FileSystem = LOCAL) -> None:
        self._ignore_case = ignore_case
        self._system = system
        self._known: dict[str, tuple[_Signature, _Spec | str]] = {}

    def why(self, root: str, path: str) -> str:
        """Why the file at `path`, seen from `root`, is hidden; empty when it is not."""
        parts = [each for each in path.split("/") if each not in ("", ".")]
        folders = list(accumulate(parts[:-1], lambda above, name: f"{above}/{name}", initial=root.rstrip("/")))
        for (depth, folder), own in product(enumerate(folders), IGNORE_FILES):
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
            return _unreadable(error)
        try:
            found = self._system.stat(file) if stat.S_ISLNK(found.st_mode) else found
        except (FileNotFoundError, NotADirectoryError):
            return "it leads nowhere"
        except OSError as error:
            return _unreadable(error)
        signature = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        known = self._known.get(file)
        if known is None or known[0] != signature:
            known = self._known[file] = (signature, self._parsed(file, found))
        return known[1]

    def _parsed(self, file: str, found: os.stat_result) -> _Spec | str:
        if not stat.S_ISREG(found.st_mode):
            return "it is not a file"
        if found.st_size > MOST_BYTES:
            return "it is too large"
        try:
            there = Path(follow(file, system=self._system))
            text = (self._system.read(there, most=MOST_BYTES) or b"").decode("utf-8-sig")
            return _Spec(text, ignore_case=self._ignore_case)
        except OSError as error:
            return _unreadable(error)
        except ValueError:  # not UTF-8, or a line that is not a pattern
            return "a line in it makes no sense"


_STREAMS = re.compile(r"/dev/(?:stdin|stdout|stderr|fd/[0-2])")
_OF_ITSELF = re.compile(r"/proc/self/(status|limits|cgroup|mountinfo|mounts|stat|comm)")
# Here programs share one copy of a file among many folders (pnpm, uv, cargo): another name for it is not a trick.
STORES = frozenset(["node_modules", "site-packages", ".venv", "venv", "target", ".git", ".pnpm-store"])


@dataclass(frozen=True, slots=True, kw_only=True)
class PathStatus:
    """What a name means. A text says why something is so; an empty one says that it is not."""

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
    return "ask", "low", "files are read only with your approval", "file.read"


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
    return "ask", "medium", "files are changed only with your approval", "file.write"


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
    return Names(
        {
            "protected": PROTECTED,
            "credential": CREDENTIAL,
            "example": EXAMPLE,
            "public": PUBLIC,
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
