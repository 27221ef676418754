"""A home of one's own for a measurement: empty, or with the start-up file that is to be measured."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

# What a person's .bashrc is mostly made of, without starting any program.
BASHRC = "\n".join(
    [
        "case $- in *i*) ;; *) return;; esac",
        "HISTCONTROL=ignoreboth HISTSIZE=1000 HISTFILESIZE=2000",
        "shopt -s histappend checkwinsize globstar",
        *(f"alias a{n}='ls -l --color=auto --sort=time dir{n}'" for n in range(30)),
        *(f'export SETTING_{n}="$HOME/.config/program{n}"' for n in range(30)),
        *(f'export PATH="$HOME/tools{n}/bin:$PATH"' for n in range(5)),
        *(f"f{n}() {{\n  local dir=$1\n  [[ -d $dir ]] && cd \"$dir\" || echo \"no $dir\"\n}}" for n in range(6)),
        r"PS1='\[\e[32m\]\u@\h\[\e[0m\]:\[\e[34m\]\w\[\e[0m\]\$ '",
    ]
)  # fmt: skip


@contextmanager
def private_home(bashrc: str = "") -> Iterator[Path]:
    """Make HOME, and Tarmac's state with it, a fresh directory for this process and what it starts."""
    before = dict(os.environ)
    with TemporaryDirectory(prefix="tarmac-bench-") as folder:
        home = Path(folder)
        if bashrc:
            (home / ".bashrc").write_text(bashrc + "\n")
        os.environ.update(HOME=folder, TERM="xterm-256color", LC_ALL="C.UTF-8")
        for name in ("TARMAC_STATE_DIR", "XDG_STATE_HOME", "BASH_ENV", "PROMPT_COMMAND", "PS1"):
            os.environ.pop(name, None)
        try:
            yield home
        finally:
            os.environ.clear()
            os.environ.update(before)
