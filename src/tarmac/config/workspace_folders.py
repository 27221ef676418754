"""Which folders may be the workspace of an agent."""

import os
from collections.abc import Mapping
from pathlib import Path

from tarmac.errors import BadRequest
from tarmac.paths import check_directory, config_dir, shown, state_dir
from tarmac.policy.files import look

HINT = "choose the folder of a project"


def check_workspace(folder: Path, environ: Mapping[str, str]) -> Path:
    """The folder, made absolute. BadRequest if an agent may not have it as a workspace.

    Files of the workspace may be read and changed with fewer questions, so it can't contain the home directory, and
    it can't be a folder with credentials or with Tarmac's own files.
    """
    folder = check_directory(folder)
    real = Path(os.path.realpath(folder))
    if real == Path(real.anchor):
        raise BadRequest("the whole machine can't be the workspace", hint=HINT)
    home = environ.get("HOME", "")
    if home.startswith("/") and Path(os.path.realpath(home)).is_relative_to(real):
        raise BadRequest(f"{shown(folder)} contains your home directory, so it can't be the workspace", hint=HINT)
    for own in (state_dir(environ), config_dir(environ)):
        if real.is_relative_to(os.path.realpath(own)):
            raise BadRequest(f"{shown(folder)} belongs to Tarmac, so it can't be the workspace", hint=HINT)
    if look(real, cwd=real.parent, workspace=Path("/nonexistent")).credential:
        raise BadRequest(f"{shown(folder)} may contain credentials, so it can't be the workspace", hint=HINT)
    return folder
