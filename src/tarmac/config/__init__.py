"""What can be set, by whom, and what it is now: every value knows where it comes from.

load_config(workspace, environ, overrides) → Config

defaults < config.toml in the user's folder < TARMAC_… variables < command line; and after all of these the
workspace's `.tarmac/config.toml`, which may only tighten. Whatever is wrong is a ConfigError with file and line.
"""

from tarmac.config.config import Auto, Config, Origin, Secret
from tarmac.config.loading import load_config

__all__ = ["Auto", "Config", "Origin", "Secret", "load_config"]
