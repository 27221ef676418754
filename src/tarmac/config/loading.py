"""From files, environment and command line to a Config."""

from collections.abc import Mapping
from pathlib import Path

from tarmac.config.config import Config


def load_config(workspace: Path, environ: Mapping[str, str], overrides: Mapping[str, object] | None = None) -> Config:
    """The configuration for `workspace`; `overrides` are the command line's, by key. ConfigError."""
    raise NotImplementedError
