"""Check a git repository's own configuration: could it make git start a program, even when git only reads?

check_repository(ground) → None | Unproven

The configuration is read as git reads it. Every key must be known to start nothing. New versions of git add keys that
name programs, so an unlisted key is not trusted. git itself is not asked, because it would obey the file first.
"""

import os
import re
import struct
from collections.abc import Iterator
from pathlib import Path

from tarmac.policy.budget import note
from tarmac.policy.places import Ground
from tarmac.policy.programs.program import grammars
from tarmac.policy.verdict import Unproven

GITLINK = 0o160000  # the mode of a submodule
LARGEST_INDEX = 64 << 20
_FIXED = 40  # bytes of times, numbers, mode and size, before the hash


class UnreadableIndex(Exception):
    """It is not an index that we know how to read."""


def read_index(folder: Path, *, hash_size: int = 20) -> list[tuple[int, str]]:
    """Mode and name of each entry; none where there is no index yet."""
    path = folder / "index"
    if not path.is_file():
        return []
    try:
        found, shared = _entries(path, hash_size)
        if shared:
            found += _entries(folder / f"sharedindex.{shared}", hash_size)[0]
    except (struct.error, IndexError, OSError) as error:
        raise UnreadableIndex(str(error)) from error
    return found


def _entries(path: Path, hash_size: int) -> tuple[list[tuple[int, str]], str]:
    """The entries of one file, and the hash in the name of the shared one, if there is one."""
    if path.stat().st_size > LARGEST_INDEX:
        raise UnreadableIndex("it is too long")
    data = path.read_bytes()
    magic, version, count = struct.unpack_from(">4sII", data)
    if magic != b"DIRC" or version not in (2, 3, 4):
        raise UnreadableIndex(f"it is of version {version}")
    found: list[tuple[int, str]] = []
    at, before = 12, b""
    for _ in range(count):
        start = at
        mode: int = struct.unpack_from(">I", data, at + 24)[0]
        flags: int = struct.unpack_from(">H", data, at + _FIXED + hash_size)[0]
        at += _FIXED + hash_size + (4 if flags & 0x4000 else 2)
        kept = 0
        if version == 4:
            kept, at = _varint(data, at)
        end = data.index(b"\0", at)
        before = (before[: len(before) - kept] if version == 4 else b"") + data[at:end]
        if before:
            found.append((mode, before.decode("utf-8", "surrogateescape")))
        at = end + 1 if version == 4 else start + (end - start + 8) // 8 * 8
    while at + 8 <= len(data) - hash_size:
        name, size = struct.unpack_from(">4sI", data, at)
        if name == b"link":
            return found, data[at + 8 : at + 8 + hash_size].hex()
        at += 8 + size
    return found, ""


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number as git packs it, seven bits a byte; and where the next begins."""
    value = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        value = ((value + 1) << 7) | (data[at] & 0x7F)
    return value, at + 1


MOST_BYTES = 1 << 20
_SECTION = re.compile(r'\[[ \t]*([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\\n]|\\[^\n])*)")?[ \t]*\]')
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9-]*)[ \t]*")
_KNOWN = re.compile(
    r"""
      core\.(repositoryformatversion|filemode|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|eol|safecrlf
        |quotepath|abbrev|compression|loosecompression|bigfilethreshold|untrackedcache|preloadindex|splitindex|commitgraph
        |multipackindex|trustctime|checkstat|whitespace|longpaths|protecthfs|protectntfs|sparsecheckout|sparsecheckoutcone
        |sharedrepository|commentchar|hidedotfiles|logpackaccess|deltabasecachelimit|packedgitlimit|packedgitwindowsize)
    | extensions\.(objectformat|worktreeconfig|refstorage|noop|preciousobjects|relativeworktrees|compatobjectformat)
    | user\..* | author\..* | committer\..* | branch\..* | advice\..* | color\..* | column\..* | gui\..* | gitflow\..*
    | remote\.(.*\.)?(url|fetch|push|pushurl|tagopt|prune|prunetags|mirror|gh-resolved|glab-resolved|skipdefaultupdate
        |skipfetchall|followremotehead|pushdefault)
    | submodule\.(.*\.)?(active|url|branch|ignore|fetchrecursesubmodules|recurse|fetchjobs)
    | diff\.(algorithm|renames|renamelimit|mnemonicprefix|noprefix|colormoved|colormovedws|wordregex|context|relative
        |interhunkcontext|indentheuristic|ignoresubmodules|statgraphwidth|statnamewidth|suppressblankempty|wserrorhighlight)
    | diff\..*\.(xfuncname|funcname|binary|wordregex)
    | (fetch|pull|push|rebase|merge|rerere|init|commit|tag|gc|pack|index|feature|status|stash|checkout|clone|transfer
        |receive|am|apply|versionsort|worktree|maintenance|repack|notes)\.[a-z]*
    | log\.(decorate|date|follow|abbrevcommit|mailmap|graphcolors|excludedecoration|diffmerges)
    | lfs\.(repositoryformatversion|.*\.(access|locksverify))
    | (credential|http|url|mergetool|difftool|sendemail|svn|svn-remote)\..*
    """,
    re.VERBOSE,
)
# The plan's own switches say otherwise, and win; not so in a submodule, where git forgets them.
_OVERRIDDEN = frozenset(("core.fsmonitor", "core.pager", "core.hookspath", "core.sshcommand", "core.editor"))
_PERSONAL_SECRET = re.compile(r"token|passw|secret|extraheader|cookie|\.key$")
DEEPEST = 6  # submodules in submodules
_PASSWORD = re.compile(r"://[^/@]*:[^/@]+@|://(gh[a-z]_|github_pat_|glpat-)[^/@]*@")


def check_repository(ground: Ground, *, planned: bool = True) -> None:
    """Every repository that git could take for the one around `ground`, and the ones inside that it asks in turn.

    `planned`: git runs as a plan says, with switches of its own over those of the repository.
    """
    place = Path(ground.cwd)
    for folder in (place, *place.parents):
        dot = folder / ".git"
        note(str(dot))
        try:
            if not dot.exists():
                continue
            for each in _folders(dot):
                _check_folder(each, ground, overridden=planned)
            _check_inner(folder, dot, ground)
        except OSError as error:
            raise Unproven(f"the repository can't be looked at: {error.strerror}") from None
        if not (f"{folder}/".startswith(ground.workspace.rstrip("/") + "/")):
            return  # an empty .git is passed over by git: inside of the workspace anybody could have put one


def _folders(dot: Path) -> list[Path]:
    """The repository behind a `.git`: itself or where it points to, and what that shares with others."""
    if dot.is_file():
        text = dot.read_bytes()[:4096].decode("utf-8", "surrogateescape")
        dot = Path(os.path.realpath(dot.parent / text.removeprefix("gitdir:").strip()))
    note(str(dot / "commondir"))
    if (dot / "commondir").is_file():
        common = (dot / "commondir").read_bytes()[:4096].decode("utf-8", "surrogateescape").strip()
        return [dot, Path(os.path.realpath(dot / common))]
    return [dot]


def git_folders(ground: Ground) -> Iterator[str]:
    """What git reads of the repository around `ground` that is not in the workspace.

    A `.git` that points elsewhere counts only if that place points back, as it does for a worktree or a submodule.
    """
    inside = ground.workspace.rstrip("/") + "/"
    place = Path(ground.cwd)
    for folder in (place, *place.parents):
        dot = folder / ".git"
        if not dot.exists():
            continue
        try:
            found = _folders(dot)
            if dot.is_file() and not _points_back(found[0], dot):
                return
            borrowed = [other for each in found for other in _alternates(each / "objects")]
            yield from (str(each) for each in (*found, *borrowed) if not f"{each}/".startswith(inside))
        except OSError:
            return
        return


def outer_root(ground: Ground) -> str | None:
    """The top of the repository around `ground`, when that is above the workspace."""
    place = Path(ground.cwd)
    for folder in (place, *place.parents):
        if (folder / ".git").exists():
            return None if f"{folder}/".startswith(ground.workspace.rstrip("/") + "/") else str(folder)
    return None


def _points_back(repository: Path, dot: Path) -> bool:
    if (link := repository / "gitdir").is_file():  # of a worktree
        return os.path.realpath(link.read_bytes()[:4096].decode("utf-8", "surrogateescape").strip()) == str(dot)
    if (config := repository / "config").is_file():  # of a submodule
        text = config.read_bytes()[:MOST_BYTES].decode("utf-8", "surrogateescape")
        return any(
            key == "core.worktree" and os.path.realpath(repository / value) == str(dot.parent)
            for key, value in settings(text)
        )
    return False


def _alternates(objects: Path, deeper: int = 5) -> Iterator[Path]:
    """The stores of objects that a repository borrows from."""
    try:
        text = (objects / "info/alternates").read_bytes()[:65536].decode("utf-8", "surrogateescape")
    except OSError:
        return
    for line in text.splitlines():
        there = Path(os.path.realpath(objects / line))
        if line and not line.startswith("#") and there.name == "objects" and (there.parent / "HEAD").is_file():
            yield there
            if deeper:
                yield from _alternates(there, deeper - 1)


def personal_settings(home: str) -> tuple[str, ...] | None:
    """The files of a person's own git settings, and those they name; None when one may hold credentials."""
    found: list[str] = []
    waiting = [f"{home}/.gitconfig", f"{home}/.config/git/config"]
    kept = [f"{home}/.config/git/ignore", f"{home}/.config/git/attributes"]
    try:
        while waiting:
            file = os.path.realpath(waiting.pop())
            note(file)
            if file in found or not os.path.exists(file):  # noqa: PTH110
                continue
            if len(found) > 20 or os.path.getsize(file) > MOST_BYTES or not os.path.isfile(file):  # noqa: PTH113, PTH202
                return None
            found.append(file)
            for key, value in settings(Path(file).read_bytes().decode("utf-8", "surrogateescape")):
                if _PERSONAL_SECRET.search(key) or re.search(r"://[^/@\s]*:[^/@\s]*@", f"{key} {value}"):
                    return None
                there = os.path.join(os.path.dirname(file), value.replace("~", home, 1) if value[:1] == "~" else value)  # noqa: PTH118, PTH120
                if key.startswith(("include.", "includeif.")):
                    waiting.append(there)
                elif key in ("core.excludesfile", "core.attributesfile", "mailmap.file"):
                    kept.append(os.path.realpath(there))
    except (OSError, Unproven):
        return None
    return (*found, *(each for each in kept if os.path.isfile(each)))  # noqa: PTH113


def _check_folder(folder: Path, ground: Ground, *, overridden: bool) -> None:
    for name in ("config", "config.worktree"):
        path = folder / name
        note(str(path))
        if not path.is_file():
            continue
        if path.stat().st_size > MOST_BYTES:
            raise Unproven("the repository's configuration is too long to be read")
        for key, value in settings(path.read_bytes().decode("utf-8", "surrogateescape")):
            if not _harmless(key, value, folder, ground, overridden=overridden):
                raise Unproven(f"the repository's own configuration may name a program to run ({key})")


def _harmless(key: str, value: str, folder: Path, ground: Ground, *, overridden: bool) -> bool:
    if key == "core.bare":
        return value.lower() == "false"
    if key == "core.worktree":
        there = os.path.realpath(folder / value)
        return f"{there}/".startswith(ground.workspace.rstrip("/") + "/")
    if key.startswith("alias."):  # an alias can't take the place of git's own commands, but for those it drops one day
        name = key.removeprefix("alias.")
        return not any(f"{known} ".startswith(f"git {name} ") for known in grammars())
    return (overridden and key in _OVERRIDDEN) or _KNOWN.fullmatch(key) is not None


def _check_inner(folder: Path, dot: Path, ground: Ground, *, depth: int = 0) -> None:
    """Submodules: git starts itself in them, with their own configuration and without the plan's switches."""
    if depth > DEEPEST:
        raise Unproven("the repository holds others, in each other")
    for each in _folders(dot):
        note(str(each / "modules"))
        for config in sorted((each / "modules").glob("**/config")) if (each / "modules").is_dir() else ():
            _check_folder(config.parent, ground, overridden=False)
    for name in submodules(_folders(dot)[0]):
        inner = folder / name / ".git"
        note(str(inner))
        if inner.exists():
            for each in _folders(inner):
                _check_folder(each, ground, overridden=False)
            _check_inner(folder / name, inner, ground, depth=depth + 1)


def submodules(folder: Path) -> list[str]:
    """The paths of submodules in the index of a repository."""
    try:
        return [name for mode, name in index_entries(folder) if mode == GITLINK]
    except UnreadableIndex as error:
        raise Unproven(f"the repository's index can't be read: {error}") from None


def index_entries(folder: Path) -> list[tuple[int, str]]:
    """Mode and name of all that the repository `folder` tracks."""
    note(str(folder / "index"))
    long = any(
        (key, value.lower()) == ("extensions.objectformat", "sha256")
        for each in _folders(folder)
        for key, value in _settings_of(each)
    )
    return read_index(folder, hash_size=32 if long else 20)


def _settings_of(folder: Path) -> Iterator[tuple[str, str]]:
    for name in ("config", "config.worktree"):
        path = folder / name
        if path.is_file() and path.stat().st_size <= MOST_BYTES:
            yield from settings(path.read_bytes().decode("utf-8", "surrogateescape"))


def check_addresses(ground: Ground) -> None:
    """No address of the repository around `ground` holds a password: it would be printed."""
    place = Path(ground.cwd)
    for folder in (place, *place.parents):
        if (folder / ".git").exists():
            for each in _folders(folder / ".git"):
                if any(_PASSWORD.search(value) for key, value in _settings_of(each) if key.endswith("url")):
                    raise Unproven("an address in the repository's configuration holds a password")
            return


def tracks(path: Path) -> bool | None:
    """Whether git tracks `path` or something below it; None where there is no repository, or nobody can tell."""
    for folder in path.parents:
        dot = folder / ".git"
        if not dot.exists():
            continue
        try:
            inside = str(path.relative_to(folder))
            names = [name for _, name in index_entries(_folders(dot)[0])]
        except (OSError, Unproven, UnreadableIndex):
            return None
        if not names:
            return None  # nothing was ever added: then git keeps nothing
        return any(name == inside or name.startswith(f"{inside}/") for name in names)
    return None


def settings(text: str) -> Iterator[tuple[str, str]]:
    """The keys and values of a configuration, as git reads them; Unproven for what it would not read either."""
    section = ""
    at = 1 if text.startswith("\ufeff") else 0
    while at < len(text):
        if text[at] in " \t\r\n":
            at += 1
        elif text[at] in "#;":
            at = _line_end(text, at)
        elif found := _SECTION.match(text, at):
            name, sub = found[1].lower(), found[2]
            section = name if sub is None else f"{name}.{_unescaped(sub)}"
            at = found.end()
        elif section and (found := _KEY.match(text, at)):
            value, at = _value(text, found.end())
            yield f"{section}.{found[1].lower()}", value
        else:
            raise Unproven("the repository's configuration can't be read")


def _value(text: str, at: int) -> tuple[str, int]:
    """What stands behind a key, and where the next line begins. A key alone means true."""
    if text[at : at + 1] != "=":
        if at < len(text) and text[at] not in "\r\n#;":
            raise Unproven("the repository's configuration can't be read")
        return "true", _line_end(text, at)
    at += 1
    value: list[str] = []
    quoted = False
    while at < len(text) and text[at] != "\n":
        character = text[at]
        if character == "\\":
            following = text[at + 1 : at + 2]
            value.append({"\n": "", "n": "\n", "t": "\t", "b": "\b"}.get(following, following))
            at += 2
            continue
        if character == '"':
            quoted = not quoted
        elif character in "#;" and not quoted:
            at = _line_end(text, at)
            break
        else:
            value.append(character)
        at += 1
    if quoted:
        raise Unproven("the repository's configuration can't be read")
    return "".join(value).strip(), at


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)
