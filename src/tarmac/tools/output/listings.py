"""Listings of files and of git: ls, git status, git log, git diff --stat."""

import re

from tarmac.tools.output.values import (
    LONGEST_LINE,
    DiffStat,
    GitCommit,
    GitLog,
    GitStatus,
    ListedFile,
    ListedFiles,
)

_LONG = re.compile(
    r"([-dlbcps])[-rwxsStT]{9}[.+@]?\s+\d+\s+\S+\s+\S+\s+(?:\d+,\s+\d+|([\d.]+[KMGTP]?))\s+"
    r"(?:\S+\s+\d+\s+[\d:]+|\d{4}-\d\d-\d\d \d\d:\d\d(?::[\d.]+ [-+]\d+)?)\s(.+)"
)
_KINDS = {"-": "file", "d": "folder", "l": "link"}
_MARKS = {"/": "folder", "@": "link", "*": "file", "|": "other", "=": "other"}
_UNITS = {"K": 10, "M": 20, "G": 30, "T": 40, "P": 50}
_SHORT = re.compile(r"([ MADRCUT?!])([ MADRCUT?!]) (.+)")
_STATE = re.compile(r"\t(?:(modified|new file|deleted|renamed|copied|typechange|both \w+|\w+ by \w+):\s+)?(.+)")
_COMMIT = re.compile(r"commit ([0-9a-f]{7,64})(?: .*)?")
_ONELINE = re.compile(r"[*|\\/ _]*([0-9a-f]{7,40}) (?:\([^)]*\) )?(\S.*)")
_CHANGED = re.compile(r" (\d+) files? changed(?:, (\d+) insertions?\(\+\))?(?:, (\d+) deletions?\(-\))?")
_STAT = re.compile(r" (.+?)\s+\|\s+(?:\d+ ?[-+]*|Bin\b.*)")


def _lines(text: str) -> list[str]:
    return [each for each in text.splitlines() if len(each) <= LONGEST_LINE]


def file_listing(text: str) -> ListedFiles | None:
    """What `ls` printed, with or without `-l`."""
    found: list[ListedFile] = []
    rows = [each for each in _lines(text) if each.strip()]
    if any(_LONG.fullmatch(row) for row in rows):
        for row in rows:
            if match := _LONG.fullmatch(row):
                name, _, target = match[3].partition(" -> ") if match[1] == "l" else (match[3], "", "")
                if name not in (".", ".."):
                    found.append(_listed(name, _KINDS.get(match[1], "other"), _size(match[2]), target))
        return ListedFiles(tuple(found))
    for row in rows:
        if row.endswith(":") or row.startswith(("ls: ", "total ")):  # the head of a folder, an error
            continue
        mark = _MARKS.get(row[-1])
        found.append(_listed(row[:-1], mark) if mark and len(row) > 1 else _listed(row, "file"))
    return ListedFiles(tuple(found)) if found else None


def _listed(name: str, kind: str, size: int | None = None, target: str = "") -> ListedFile:
    match kind:
        case "folder" | "link" | "file":
            return ListedFile(name=name, kind=kind, size=size, target=target)
    return ListedFile(name=name, kind="other", size=size, target=target)


def _size(text: str | None) -> int | None:
    if text is None:
        return None
    shift = _UNITS.get(text[-1], 0)
    try:
        return int(float(text.rstrip("KMGTP")) * (1 << shift))
    except ValueError:
        return None


def git_status(text: str) -> GitStatus | None:
    """What `git status` printed, long or short."""
    lines = _lines(text)
    if any(each.startswith(("On branch ", "HEAD detached", "Not currently on any branch")) for each in lines):
        return _long_status(lines)
    rows = [each for each in lines if each]
    if not rows or not all(each.startswith("## ") or _SHORT.fullmatch(each) for each in rows):
        return None
    branch, names = "", {"staged": [], "changed": [], "untracked": [], "conflicts": []}  # type: ignore[var-annotated]
    for row in rows:
        if row.startswith("## "):
            branch = row[3:].partition("...")[0].removeprefix("No commits yet on ")
            continue
        index, tree, name = row[0], row[1], row[3:]
        if index == "?":
            names["untracked"].append(name)
        elif index == "!":
            continue
        elif "U" in (index, tree) or (index, tree) in (("A", "A"), ("D", "D")):
            names["conflicts"].append(name)
        else:
            if index != " ":
                names["staged"].append(name)
            if tree != " ":
                names["changed"].append(name)
    return GitStatus(branch=branch, **{key: tuple(each) for key, each in names.items()})


_SECTIONS = {
    "Changes to be committed:": "staged",
    "Changes not staged for commit:": "changed",
    "Untracked files:": "untracked",
    "Unmerged paths:": "conflicts",
}


def _long_status(lines: list[str]) -> GitStatus:
    branch, section = "", ""
    names: dict[str, list[str]] = {each: [] for each in _SECTIONS.values()}
    for row in lines:
        if row.startswith(("On branch ", "HEAD detached at ", "HEAD detached from ")):
            branch = row.removeprefix("On branch ")
        elif row in _SECTIONS:
            section = _SECTIONS[row]
        elif section and (match := _STATE.fullmatch(row)):
            names[section].append(match[2])
    return GitStatus(branch=branch, **{key: tuple(each) for key, each in names.items()})


def git_log(text: str) -> GitLog | None:
    """What `git log` printed, in its own format or with `--oneline`."""
    lines = _lines(text)
    if any(_COMMIT.fullmatch(each) for each in lines):
        return _long_log(lines)
    found = [match for each in lines if (match := _ONELINE.fullmatch(each))]
    rows = [each for each in lines if each.strip(" |\\/_*")]
    if not found or len(found) < len(rows):
        return None
    return GitLog(tuple(GitCommit(match[1], match[2]) for match in found))


def _long_log(lines: list[str]) -> GitLog:
    commits: list[GitCommit] = []
    id = author = date = ""
    for row in lines:
        if match := _COMMIT.fullmatch(row):
            if id:
                commits.append(GitCommit(id, "", author, date))
            id, author, date = match[1], "", ""
        elif row.startswith("Author: "):
            author = row[8:].strip()
        elif row.startswith("Date: "):
            date = row[6:].strip()
        elif id and row.startswith("    ") and row.strip():
            commits.append(GitCommit(id, row.strip(), author, date))
            id = ""
    if id:
        commits.append(GitCommit(id, "", author, date))
    return GitLog(tuple(commits))


def diff_stat(text: str) -> DiffStat | None:
    """What `git diff --stat` or `--shortstat` printed."""
    files: list[str] = []
    for row in _lines(text):
        if match := _CHANGED.fullmatch(row):
            changed, added, removed = (int(each or 0) for each in match.groups())
            return DiffStat(files=tuple(files), changed=changed, insertions=added, deletions=removed)
        if match := _STAT.fullmatch(row):
            files.append(match[1].strip())
    return None
