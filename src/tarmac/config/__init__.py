"""The configuration. Every value knows its origin.

load_config(workspace, environ, overrides) → Config

Precedence: defaults < config.toml in the user's folder < TARMAC_… variables < command line. The workspace's
`.tarmac/config.toml` comes last, and may only tighten. An error is a ConfigError with file and line.
"""

from tarmac.config.config import Auto, Config, Origin, Secret
from tarmac.config.load import load_config

__all__ = ["Auto", "Config", "Origin", "Secret", "load_config"]
