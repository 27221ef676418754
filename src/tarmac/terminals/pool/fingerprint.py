"""What a shell is made with. When any of it changes, a new shell would be different from a warm one.

A file that a start-up file reads in turn is not noticed, nor is a program that it runs.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tarmac.terminals.settings import Settings
from tarmac.terminals.shell.shells import Shell


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What a shell is made with. The settings include its size and sandbox."""

    shell: str
    environ: Mapping[str, str]
    settings: Settings
    start_up_files: tuple[tuple[str, int, int, int], ...]  # each one's path, inode, size, modification time


def fingerprint(shell: Shell, settings: Settings, environ: Mapping[str, str]) -> Fingerprint:
    """What a shell would be made with now."""
    paths = start_up_files(shell.name, environ) if settings.start_up_files else ()
    return Fingerprint(shell.path, dict(environ), settings, tuple(_stat(paths)))


def start_up_files(shell: str, environ: Mapping[str, str]) -> Iterator[str]:
    """The files that an interactive `shell` reads when it starts, whether they exist or not."""
    home = environ.get("HOME", "/")
    match shell:
        case "bash":
            yield from ("/etc/bash.bashrc", "/etc/bash.bashrc.local", f"{home}/.bashrc")
        case "zsh":
            for folder in ("/etc/", "/etc/zsh/", f"{environ.get('ZDOTDIR') or home}/."):
                yield from (f"{folder}zshenv", f"{folder}zshrc")
        case "fish":
            for folder in ("/etc/fish", f"{environ.get('XDG_CONFIG_HOME') or home + '/.config'}/fish"):
                yield from (f"{folder}/config.fish", f"{folder}/conf.d")
                yield from sorted(map(str, Path(folder, "conf.d").glob("*.fish")))


def _stat(paths: Iterable[str]) -> Iterator[tuple[str, int, int, int]]:
    for path in paths:
        try:
            found = os.stat(path)
        except OSError:
            continue
        yield path, found.st_ino, found.st_size, found.st_mtime_ns
