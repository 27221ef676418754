"""The words of a command as its program gets them, patterns expanded here and now; Unproven where that is uncertain."""

import fnmatch
import os
import re
from collections.abc import Sequence
from functools import lru_cache

from tarmac.policy.cache_key import note
from tarmac.policy.parse.words import Word
from tarmac.policy.paths.patterns import expand
from tarmac.policy.paths.places import Ground, listable
from tarmac.policy.programs.grammar import Unproven, programs
from tarmac.policy.programs.spelling import written_out

MOST_NAMES = 500  # that a pattern may become
MOST_FOLDERS = 40  # in a pattern
# Letters of other alphabets that look like ours.
_LOOKALIKES = frozenset("аеорсухіјѕһԁԛԝАВЕКМНОРСТУХІЈЅαοινρτυκΑΒΕΖΗΙΚΜΝΟΡΤΥΧ")


def expand_words(words: Sequence[Word], ground: Ground) -> tuple[str, ...]:
    """The words as the program gets them; Unproven when that isn't certain."""
    found: list[str] = []
    exists = os.path.isdir(ground.cwd)
    for word in words:
        if word.text is None:
            raise Unproven(f"`{word.source}` is not known before it runs")
        if word.home:
            raise Unproven("~ leads out of the workspace")
        for text, pattern in written_out(word):
            found += _names(word, text, words[0].text, ground, exists=exists) if pattern else [text]
    return tuple(found)


def names_of(word: Word, ground: Ground) -> list[str]:
    """What one word of a loop's list becomes; no option, as nothing is run with it alone."""
    if word.text is None or word.home:
        raise Unproven(f"`{word.source}` is not known before it runs")
    exists = os.path.isdir(ground.cwd)
    found: list[str] = []
    for text, pattern in written_out(word):
        found += _names(word, text, "echo", ground, exists=exists) if pattern else [text]
    return found


def _names(word: Word, pattern: str, command: str | None, ground: Ground, *, exists: bool) -> list[str]:
    """What a pattern becomes here and now; itself when nothing matches."""
    if not word.plain or re.search(r"\[[\^:]|\[\[|\\", pattern):
        raise Unproven(f"the pattern `{word.source}` is not read here")
    if not listable(ground.locate(re.split(r"[*?\[]", pattern)[0].rpartition("/")[0] or ".")):
        raise Unproven(f"`{word.source}` gives names from outside of the workspace")
    names = sorted(_matching(pattern, ground.cwd)) if exists else []
    if len(names) > MOST_NAMES:
        raise Unproven(f"`{word.source}` matches more than {MOST_NAMES} names")
    if not exists and pattern[0] in "*?[" and not _any_option_reads(command):
        raise Unproven(f"a name that matches `{word.source}` could be an option")
    if not names and _may_be_secret(pattern):
        raise Unproven(f"`{word.source}` may be a file of secrets")
    return names or [pattern]


def _matching(pattern: str, cwd: str) -> list[str]:
    """What the shell would put for a pattern of * and ?; hidden names only when asked for."""
    note(cwd)
    parts = pattern.split("/")
    if len(parts) > MOST_FOLDERS:
        raise Unproven(f"a pattern of more than {MOST_FOLDERS} folders is not read here")
    for depth in range(1, len(parts)):  # a change in any folder it looks into may give other names
        note(os.path.join(cwd, *parts[:depth]))
    return expand(pattern, cwd) if len(pattern) < 4096 else []


def _may_be_secret(pattern: str) -> bool:
    """Whether a pattern that says something, more than `*`, could mean a file of secrets."""
    name = pattern.rpartition("/")[2]
    samples = (
        ".env",
        ".env.local",
        ".netrc",
        ".npmrc",
        ".pypirc",
        ".git-credentials",
        "id_rsa",
        "server.pem",
        "server.key",
    )
    return len(re.sub(r"[*?\[\]]", "", name)) >= 2 and any(fnmatch.fnmatchcase(each, name) for each in samples)


@lru_cache(maxsize=256)
def _any_option_reads(name: str | None) -> bool:
    entry = programs().get(name or "")
    return entry is not None and entry.harmless_options


def looks_alike(word: str) -> bool:
    """Whether a word could be taken for another: Latin letters mixed with lookalikes, or nothing but lookalikes."""
    if word.isascii() or _LOOKALIKES.isdisjoint(word):
        return False
    letters = [character for character in word if character.isalpha()]
    return any(character.isascii() for character in letters) or _LOOKALIKES.issuperset(letters)
