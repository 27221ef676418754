"""Files that a command reads or writes, and how much that weighs: by where they are and how they are named."""

import re
from dataclasses import dataclass

from tarmac.policy.budget import Spent
from tarmac.policy.cache_key import note
from tarmac.policy.parse.words import UNKNOWN, Word
from tarmac.policy.paths.files import Files
from tarmac.policy.paths.patterns import expand
from tarmac.policy.paths.places import Ground, Place
from tarmac.policy.programs.effects import Assessment, shown
from tarmac.policy.rule import EffectKind, Rule
from tarmac.policy.verdict import Risk, worst

_WRITE_RISK: dict[str, Risk] = {"workspace": "medium", "temporary": "medium", "harmless": "low"}
_STAYS = re.compile(r"\.ssh/|cron|sudoers|/etc/(passwd|shadow|profile|ld\.so)|autostart|systemd|LaunchAgents")
# They show or change no more of a file than its name, dates and rights.
NAMES_ONLY = frozenset(
    """
    ls stat test [ file du df find tree touch chmod chown mkdir basename dirname realpath readlink
    lsblk blkid fdisk sfdisk gdisk parted get-childitem get-item test-path resolve-path split-path join-path
""".split()
)
# What is said of a file that they are given, where it is not that they read it.
_DOES = {
    **dict.fromkeys(("rm", "unlink", "rmdir"), "deletes"),
    **dict.fromkeys(("mv", "ln"), "moves or links"),
    **dict.fromkeys(("chmod", "chown", "chgrp", "touch", "truncate", "shred", "tee"), "changes"),
}
_CONTENT = frozenset("cat dd head tail strings xxd hexdump od cp less more grep base64 gzip nc tac cmp md5sum".split())
# Their operands are patterns or texts as often as files.
_TEXTUAL = frozenset(
    """
    rm grep egrep fgrep rg ag which test [ find kill chmod touch ssh-keygen sed awk gawk jq
""".split()
)
_NO_FILES = frozenset(["echo", "printf", "git", "basename", "dirname"])


@dataclass(frozen=True, slots=True)
class At:
    """Where a command stands, and how to look at files there."""

    ground: Ground
    files: Files
    fetched: frozenset[str] = frozenset()  # files that the line downloaded before

    def protected(self, text: str) -> str:
        """Why a file is more than a file; empty when it isn't."""
        if UNKNOWN in text or text.startswith("~"):
            tail = text.rsplit("/", 1)[-1]
            text = tail if UNKNOWN not in tail else ""
        if not text:
            return ""
        look = self.ground.look(self.files, text)
        return look.protected or look.own

    def credential(self, text: str) -> str:
        """Why a file is taken for credentials."""
        return self.ground.look(self.files, text).credential

    def hidden(self, text: str) -> str:
        """Why a file is hidden from agents."""
        return self.ground.look(self.files, text).ignored

    def outside(self, operand: str) -> bool:
        """Whether an operand names something outside of the workspace."""
        if operand.startswith("-") or UNKNOWN in operand:
            return False
        if self.ground.inside and not ("/" in operand or operand.startswith("~") or operand == ".."):
            return False
        place = self.ground.locate(operand)
        return not place.inside and place.kind != "harmless"


def look_at_argument(found: Assessment, name: str, word: Word, at: At, *, written: bool = False) -> None:
    """Whatever the program is: a name that looks like credentials is worth a question."""
    text = word.shape.partition("=")[2] if word.shape.startswith("-") and "=" in word.shape else word.shape
    text = text.removeprefix("@")
    if name == "git" and re.search(r"(^|[:/])(\.env|id_rsa)", text.partition(":")[2]):
        found.add("high", Rule.SECRET, f"reads {shown([text])}, which looks like credentials")
    if not text or text.startswith("-") or " " in text or len(text) > 400 or name in _NO_FILES:
        return
    if name in ("jq", "yq") and text.startswith(".") and "/" not in text:
        return  # a filter, no file
    if re.search(r"/dev/(tcp|udp)/", text):
        found.add("critical", Rule.SOCKET, "speaks with another machine through the shell")
    elif written:
        return
    elif word.glob and word.text:
        note(at.ground.cwd)
        try:
            names = expand(word.text, at.ground.cwd, hidden=word.text.startswith("."))[:500]
        except Spent as error:
            names = []
            found.add("medium", Rule.READ, error.does, known=False)
        for each in (*names, text):
            look_at_secret(found, name, each, at)
    elif name not in _TEXTUAL or "/" in text or text.startswith((".env", "~")):
        look_at_secret(found, name, text, at)


def look_at_secret(found: Assessment, name: str, text: str, at: At) -> None:
    """Add what reading `text` means when it is named like credentials, hidden, or Tarmac's own."""
    place = at.ground.locate(text)
    does = _DOES.get(name, "reads")
    if place.kind == "own":
        found.add("high", Rule.OWN, f"touches {shown([text])}, which belongs to Tarmac")
    elif place.kind == "secret":
        risk: Risk = "medium" if name in NAMES_ONLY else "high"
        found.add(risk, Rule.SECRET, f"{does} {shown([text])}, which looks like credentials")
    elif place.kind == "disk" and name not in NAMES_ONLY:
        raw = name in _CONTENT
        does = "reads the raw disk" if raw else "works on the disk"
        found.add("high", Rule.DISK, f"{does} {shown([text])}", vague=not raw)
    elif UNKNOWN not in text and (why := at.credential(text)):
        risk = "medium" if name in NAMES_ONLY else "high"
        found.add(risk, Rule.SECRET, f"{does} {shown([text])}: {why}")
    elif UNKNOWN not in text and at.hidden(text):
        found.add("medium", Rule.IGNORED, f"{does} {shown([text])}, which is hidden from agents")


def read_file(found: Assessment, text: str, at: At) -> None:
    """A file is read by redirection."""
    look_at_secret(found, "cat", text, at)
    if at.outside(text):
        found.add("medium", Rule.READ, f"reads {shown([text])}, outside of the workspace")


def write_file(found: Assessment, text: str, at: At, *, verb: str) -> None:
    """A file is made or changed."""
    place = at.ground.locate(text)
    if place.kind == "disk":
        found.add("critical", Rule.FLOOR_DISK, f"{verb} the disk {shown([text])}", deny=True)
        return
    if re.match(rf"/dev/[^/]*{UNKNOWN}", text):
        found.add("critical", Rule.DISK, f"{verb} {shown([text])}, which may be a disk")
        return
    risk: Risk = _WRITE_RISK.get(place.changed, "high")
    why = at.protected(text)
    if why and place.kind != "workspace":
        risk = "high"
    if why and re.search(r"(^|/)\.git(/|$)|(^|/)\.husky(/|$)", place.shown):
        risk = "high"
    if place.kind == "secret" and at.ground.locate(text.rsplit("/", 1)[0] if "/" in text else ".").inside:
        risk = "medium"  # a file of the workspace that will hold secrets
    if place.kind == "home" or _STAYS.search(text):
        risk = worst(risk, "high")
    if why:
        found.add(risk, Rule.PROTECTED, f"{verb} {shown([place.shown])}; {why}", kind=EffectKind.CONFIGURES)
    else:
        found.add(risk, Rule.WRITE, f"{verb} {shown([place.shown])}", where=where(place))


def protect(found: Assessment, text: str, at: At) -> None:
    """A file may be changed: that is asked about, whatever was allowed, when it is a protected one (P8)."""
    if why := at.protected(text):
        found.add("medium", Rule.PROTECTED, f"may change {shown([text])}; {why}", kind=EffectKind.MAY)


def where(place: Place) -> str:
    """Where a file is, for a person: ", in the workspace"."""
    if UNKNOWN in place.shown:
        return ", in a place known only when it runs"
    match place.changed:
        case "workspace":
            return ", in the workspace"
        case "system":
            return ", part of the system"
        case "home":
            return ", in somebody's home"
        case "secret":
            return ", which looks like credentials"
        case "root":
            return ", the root of the machine"
        case "temporary":
            return ", in a temporary place"
        case "own":
            return ", which belongs to Tarmac"
        case _:
            return ", outside of the workspace"
