"""Who reads answers, and who reads commands."""

import shlex

import pytest

from tarmac.terminals.shell.monitor import runs_a_script


@pytest.mark.parametrize(
    "line",
    [
        "bash deploy.sh",
        "bash -eu deploy.sh -i",
        "/bin/sh ./configure --prefix=/usr",
        "bash -c 'read x'",
        "bash -euo pipefail script",
        "bash --norc -c 'read x'",
        "bash --rcfile f script",
        "zsh -f script.zsh",
        "-bash script",
        "python3 manage.py createsuperuser",
        "python3 -X dev -W error app.py",
        "python3.12 -c 'input()'",
        "python3 -m pip uninstall x",
        "python3 -mpip uninstall x",
        "python3 -u app.py",
        "node server.js",
        "bash -- script",
        "bash -c 'x' -i",
        "node -e 'code'",
    ],
)
def test_these_run_a_script(line: str) -> None:
    """T19: what is typed is an answer."""
    words = shlex.split(line)
    assert runs_a_script(words[0].rpartition("/")[2], words)


@pytest.mark.parametrize(
    "line",
    [
        "bash",
        "-bash",
        "sh",
        "bash --norc",
        "bash --norc --noprofile",
        "bash -i",
        "bash --rcfile f",
        "bash -i script",
        "bash -ic 'x'",
        "bash -c -i 'x'",
        "bash -eo pipefail",
        "bash +O extglob",
        "bash --",
        "bash -s",
        "bash -s -- word",
        "sh -",
        "zsh -f",
        "fish",
        "python3",
        "python3 -q",
        "python3 -i app.py",
        "python3 -X dev",
        "python3 -m pdb app.py",
        "python3 -mcode",
        "python3 -m IPython",
        "node",
        "node -i",
        "node inspect server.js",
        "node --title x",
        "fish -C x",
        "fish x.fish",
        "ruby x.rb",
        "vim x",
        "psql -f x",
        "cat x",
        "",
    ],
)
def test_these_may_read_commands(line: str) -> None:
    """T19: or nobody knows, which counts the same."""
    words = shlex.split(line)
    assert not runs_a_script(words[0].rpartition("/")[2] if words else "bash", words)
