"""What a plan's programs may read: the rules that the kernel enforces.

confine(steps, ground, files) → Confinement      → terminals/process/confinement.py puts it in force

A plan was proven to only read, by what we know of programs. That knowledge has gaps. So the plan also says what its
programs need: the system's own files, the files it names, and the workspace as far as a search may go. Files that are
hidden or hold credentials are left out. A rule of the kernel covers a folder with all below it, so a folder that holds
such a file is named by its other entries.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path

from tarmac.policy.budget import note
from tarmac.policy.files import IGNORE_FILES, STORES, Files
from tarmac.policy.places import Ground, is_secret, listable
from tarmac.policy.plan import search_path
from tarmac.policy.programs.program import Trait, entries, known, registry
from tarmac.policy.programs.repository import git_folders, outer_root, personal_settings
from tarmac.policy.verdict import Confinement, Enforcement, Stage, Step, Unproven

MOST_FOLDERS = 20_000  # of a workspace that is searched for files to leave out
MOST_ENTRIES = 4_000  # that the rules name one by one
# Next to `bin`: what a program that was installed for one person needs of its own. Not `etc`, `share` or the whole.
BESIDE_BIN = ("bin", "sbin", "lib", "lib64", "libexec", "shims", "versions", "toolchains", "pyvenv.cfg", "version")
# May be read and run by every plan.
_PROGRAMS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store", "/gnu/store", "/snap")
# May be read by every plan. Never /etc, /proc, /var or a home as a whole.
_ALWAYS = (
    "/etc/ld.so.cache", "/etc/ld.so.preload", "/etc/locale.alias", "/etc/localtime", "/etc/timezone", "/etc/passwd",
    "/etc/group", "/etc/nsswitch.conf", "/etc/os-release", "/etc/alternatives", "/etc/ssl/openssl.cnf",
    "/etc/ssl/certs", "/etc/pki/tls/certs",
    "/sys/devices/system/cpu",
)  # fmt: skip
_RECURSIVE = re.compile(r"-[A-Za-z]*[rR]|--(dereference-)?recursive|--directories=recurse")
_SYSTEM = ("/usr/", "/bin/", "/sbin/")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


def confine(
    steps: Sequence[Step], ground: Ground, files: Files, enforcement: Enforcement = Enforcement.LANDLOCK
) -> Confinement | None:
    """The rules for these steps. Where nothing can enforce rules: None for the core programs, Unproven for others."""
    if enforcement is Enforcement.NONE:
        if not all(_is_core(stage.words) for step in steps for stage in step.stages):
            raise Unproven(
                "this machine can't confine commands (it has neither Landlock nor bubblewrap), so only a few"
                " well-known ones run without a question; see `tarmac doctor`"
            )
        return None
    found = _Needs(ground, files, enforcement)
    for step in steps:
        for stage in step.stages:
            found.add(stage, str(step.cwd))
    return found.confinement()


def to_search(program: str, folder: str) -> Confinement:
    """The rules for a program of ours that searches a folder: it reads what is in it, and the person's git settings."""
    home = os.environ.get("HOME", "")
    return Confinement(
        programs=(*_system(_PROGRAMS), os.path.realpath(program)),
        reads=(*_system(_ALWAYS), folder, *(personal_settings(home) or () if home else ())),
        lists=(folder,),
    )


def _is_core(words: tuple[str, ...]) -> bool:
    rest = _program_first(words)
    program = known(rest[0])
    return Trait.CORE in program.traits or not set(program.core_commands).isdisjoint(rest[1:2])


def asks_a_server(words: Sequence[str]) -> str:
    """Which command asks a server, if this one does."""
    for place, word in enumerate(words[:6]):
        if word.startswith("-"):
            continue
        rest = [each for each in words[place + 1 :] if not each.startswith("-")]
        if any(_in_order(command.split(), (word, *rest)) for command in _local_commands()):
            return ""
        program, first = known(word), known(words[0])
        if rest[:1] and rest[0] in program.server_commands:
            return f"{word} {rest[0]}"
        started = place == 0 or first.starts_only or (first.runs is not None and first.runs.assigns)
        if started and Trait.SERVER in program.traits:
            return word
    return ""


@cache
def _local_commands() -> tuple[str, ...]:
    return tuple(name for name in registry() if Trait.LOCAL in entries()[name].get("traits", "").split())


def _in_order(wanted: Sequence[str], words: Sequence[str]) -> bool:
    """Whether the words begin with the first one wanted, and the others follow, with values of options between."""
    rest = iter(words[1:])
    return words[0] == wanted[0] and all(each in rest for each in wanted[1:])


@cache
def _system(places: tuple[str, ...]) -> tuple[str, ...]:
    """The places that exist, by their real names. What lies in a folder of programs needs no rule of its own."""
    programs = {os.path.realpath(each) for each in _PROGRAMS if os.path.exists(each)}
    real = dict.fromkeys(os.path.realpath(each) for each in places if os.path.exists(each))
    return tuple(each for each in real if not any(each.startswith(f"{folder}/") for folder in programs))


class _Needs:
    """What the stages of a plan need, together."""

    def __init__(self, ground: Ground, files: Files, enforcement: Enforcement) -> None:
        self._ground, self._files, self._enforcement = ground, files, enforcement
        self._reads: dict[str, None] = {}
        self._lists: dict[str, None] = {}
        self._programs: dict[str, None] = {}
        self._scratch = self._private_home = False
        self._variables: dict[str, str] = {}
        self._folders = _folders_in(os.environ.get("PATH", ""), ground.workspace)

    def add(self, stage: Stage, cwd: str) -> None:
        words = _program_first(stage.words)
        name = words[0].rpartition("/")[2]
        self._find_programs(words)
        home = os.environ.get("HOME", "")
        for word in (each.rpartition("/")[2] for each in words):
            program = known(word)
            self._scratch = self._scratch or Trait.TEMPORARY in program.traits
            self._private_home = self._private_home or Trait.EMPTY_HOME in program.traits
            for variable in program.variables:
                key, _, self._variables[key] = variable.partition("=")
            for place in program.needs:
                self._reads[place] = None
            for name_there in program.needs_in_home if home else ():
                self._reads[os.path.realpath(f"{home}/{name_there}")] = None
        if any(Trait.REPOSITORY_SETTINGS in known(word).traits for word in words[:4]):
            self._git(replace(self._ground, cwd=cwd), home)
        if stage.alone:
            return
        here, of = replace(self._ground, cwd=cwd), known(name).traits
        self._lists[here.workspace] = None
        if stage.stdin is not None:
            self._named(stage.stdin, here)
        for word in words[1:]:
            for text in _paths_in(word):
                self._named(text, here, into=Trait.LOOKED_INTO in of)
        if Trait.NAMED_ONLY not in of or self._enforcement is Enforcement.BUBBLEWRAP:
            self._below(here.workspace)
        elif Trait.LOOKED_INTO in of and any(map(_RECURSIVE.match, words)):
            self._below(cwd)

    def confinement(self) -> Confinement:
        if self._enforcement is Enforcement.BUBBLEWRAP:
            self._lists.pop(self._ground.workspace, None)
            if self._lists or "/proc" in self._reads:
                raise Unproven("bubblewrap confines commands here, and can't show other folders or processes")
        if len(self._reads) > MOST_ENTRIES:
            raise Unproven("there are too many files next to hidden ones")
        return Confinement(
            programs=(*_system(_PROGRAMS), *self._programs),
            reads=(*_system(_ALWAYS), *self._reads),
            lists=tuple(self._lists),
            scratch=self._scratch or self._private_home,
            private_home=self._private_home,
            variables=tuple(self._variables.items()),
        )

    def _named(self, text: str, here: Ground, *, into: bool = False) -> None:
        """A word that is the name of something: a file to be read, or a folder to be searched or listed."""
        path = os.path.join(here.cwd, text)
        if len(text) > 4096 or "\0" in text or not os.path.lexists(path):
            return
        look = here.look(self._files, text)
        if look.trouble or look.own or look.ignored or look.credential or is_secret(str(look.path)) or is_secret(text):
            return
        folder = os.path.isdir(look.path)
        if look.inside:
            if not folder:
                self._reads[str(look.path)] = None
            elif into:
                self._below(str(look.path))
        elif look.public:
            own = str(look.path).startswith("/proc/self/")  # which is another folder for each program
            self._reads["/proc" if own else str(look.path)] = None
        elif folder and listable(here.locate(text)):
            self._lists[str(look.path)] = None

    def _git(self, here: Ground, home: str) -> None:
        if (root := outer_root(here)) is not None:
            if f"{os.path.realpath(home)}/".startswith(root.rstrip("/") + "/"):
                raise Unproven("the repository around the workspace holds your whole home")
            for place in TREE.visible(root, root, self._files):
                self._reads[place] = None
        for place in git_folders(here):
            self._reads[place] = None
        personal = personal_settings(home) if home else ()
        if personal is None:
            self._variables["GIT_CONFIG_GLOBAL"] = "/dev/null"
        for place in personal or ():
            self._reads[place] = None

    def _below(self, folder: str) -> None:
        for place in TREE.visible(folder, self._ground.workspace, self._files):
            self._reads[place] = None

    def _find_programs(self, words: Sequence[str]) -> None:
        """Programs that are not among the system's: installed for one person."""
        for word in words[:8]:
            for folder in self._folders if re.fullmatch(r"[A-Za-z0-9_][\w.+-]*", word) else ():
                file = f"{folder}/{word}"
                if os.access(file, os.X_OK) and os.path.isfile(file):
                    for place in installation(file, self._folders):
                        self._programs[place] = None
                    break


def _program_first(words: tuple[str, ...]) -> tuple[str, ...]:
    """Without the `env NAME=value …` in front."""
    rest = list(words)
    first = known(rest[0]).runs if rest else None
    if first is not None and first.assigns and len(rest) > 1:
        rest = rest[1:]
        while len(rest) > 1 and (_ASSIGNMENT.match(rest[0]) or rest[0] == "-u"):
            rest = rest[2:] if rest[0] == "-u" else rest[1:]
    return tuple(rest)


def _paths_in(word: str) -> Iterator[str]:
    """The parts of a word that may be a name: all of it, the value of an option, what follows a letter."""
    if word:
        yield word
    if "=" in word:
        yield word.partition("=")[2]
    if word.startswith("-") and len(word) > 2:
        yield word[2:]
    if ":" in word:  # git show HEAD:file, openssl's file:name
        yield word.partition(":")[2]


def installation(file: str, folders: Sequence[str], deeper: int = 3) -> Iterator[str]:
    """What a program needs that was installed in somebody's home: its file, its libraries, what interprets it."""
    for each in dict.fromkeys((file, os.path.realpath(file))):
        yield each
        prefix = os.path.dirname(os.path.dirname(each))
        if os.path.basename(os.path.dirname(each)) not in ("bin", "sbin", "shims") or prefix in ("", "/"):
            continue
        for name in BESIDE_BIN:
            if os.path.lexists(place := f"{prefix}/{name}") and not is_secret(place):
                yield os.path.realpath(place)
        if prefix.endswith("/.cargo"):
            yield prefix.removesuffix("/.cargo") + "/.rustup"
    try:
        with open(file, "rb") as script:
            first = script.read(256).partition(b"\n")[0]
    except OSError:
        return
    words = os.fsdecode(first[2:]).split() if first.startswith(b"#!") else []
    if words[:1] == ["/usr/bin/env"] and len(words) > 1:
        candidates = [f"{folder}/{words[1]}" for folder in folders]
        words = [each for each in candidates if os.access(each, os.X_OK)]
    if words and deeper and not words[0].startswith(_SYSTEM):
        yield from installation(words[0], folders, deeper - 1)


@lru_cache(maxsize=16)
def _folders_in(path: str, workspace: str) -> tuple[str, ...]:
    """The folders of a search path that are not the system's."""
    found = search_path(path, workspace=Path(workspace))
    return tuple(each for each in found if not f"{os.path.realpath(each)}/".startswith(_SYSTEM))


@dataclass(frozen=True, slots=True)
class _Folder:
    """What is in a folder, as long as it does not change."""

    state: tuple[object, ...]
    whole: bool  # no entry is left out; folders below are not looked at here
    entries: tuple[str, ...]  # names of files, and of folders that need no look
    folders: tuple[str, ...]
    ignores: bool  # it has an ignore file


class _Tree:
    """Which files of a workspace may be read. It remembers folders, and sees when they change."""

    def __init__(self) -> None:
        self._known: dict[str, _Folder] = {}

    def visible(self, folder: str, workspace: str, files: Files) -> Iterable[str]:
        """`folder` itself, when all in it may be read; else the entries that may be."""
        if len(self._known) > 4 * MOST_FOLDERS:
            self._known.clear()
        left = [MOST_FOLDERS]
        above: tuple[object, ...] = ()
        place = folder
        while place.startswith(workspace.rstrip("/") + "/"):
            place = os.path.dirname(place)
            above += _ignore_signature(place)
        whole, found = self._look(folder, workspace, files, above, left)
        return [folder] if whole else found

    def _look(
        self, folder: str, workspace: str, files: Files, ignores: tuple[object, ...], left: list[int]
    ) -> tuple[bool, list[str]]:
        left[0] -= 1
        if left[0] < 0:
            raise Unproven("the workspace has too many folders to look for hidden files")
        known = self._folder(folder, workspace, files, ignores)
        if known is None:
            return False, []
        if known.ignores:
            ignores += _ignore_signature(folder)
        whole = known.whole
        parts: list[tuple[bool, str, list[str]]] = []
        for name in known.folders:
            below = f"{folder}/{name}"
            complete, found = self._look(below, workspace, files, ignores, left)
            whole = whole and complete
            parts.append((complete, below, found))
        if whole:
            return True, []
        named = [f"{folder}/{name}" for name in known.entries]
        for complete, below, found in parts:
            named += [below] if complete else found
        return False, named

    def _folder(self, folder: str, workspace: str, files: Files, ignores: tuple[object, ...]) -> _Folder | None:
        note(folder)
        try:
            state = os.stat(folder)
        except OSError:
            return None
        known = self._known.get(folder)
        own = _ignore_signature(folder) if known is not None and known.ignores else ()
        if known is None or known.state != (state.st_ino, state.st_ctime_ns, ignores, *own):
            known = _read(folder, workspace, files, (state.st_ino, state.st_ctime_ns, ignores))
            if known is not None:
                self._known[folder] = known
        return known


TREE = _Tree()


def _read(folder: str, workspace: str, files: Files, state: tuple[object, ...]) -> _Folder | None:
    whole = True
    entries: list[str] = []
    folders: list[str] = []
    try:
        with os.scandir(folder) as found:
            listed = list(found)
    except OSError:
        return None
    ignores = any(each.name in IGNORE_FILES for each in listed)
    if ignores:
        state += _ignore_signature(folder)
    watched = ignores or bool(state[2])
    for each in listed:
        if each.is_symlink():  # its target has rules of its own, or none
            continue
        if _is_credential(each.name) or (watched and files.look(each.path, cwd=workspace, workspace=workspace).ignored):
            whole = False
        elif each.is_dir(follow_symlinks=False) and each.name not in STORES:
            folders.append(each.name)
        else:
            entries.append(each.name)
    return _Folder(state, whole, tuple(entries), tuple(folders), ignores)


@lru_cache(maxsize=50_000)
def _is_credential(name: str) -> bool:
    from tarmac.policy.files import credential_name

    return is_secret(name) or bool(credential_name(name))


def _ignore_signature(folder: str) -> tuple[object, ...]:
    """What the ignore files of a folder are like."""
    return tuple(each for name in IGNORE_FILES for each in _signature(f"{folder}/{name}"))


def _signature(file: str) -> tuple[object, ...]:
    """Which file this is, and what state it is in; nothing when there is none."""
    try:
        found = os.stat(file)
    except OSError:
        return ()
    return ((file, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns),)
