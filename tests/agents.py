"""Agents that nobody here wrote, from the npm registry: each in a home of its own, with the model that a test plays.

with playing(use("bash", command="ls"), say("Done.")) as model, alone(folder):
    agent = opencode(folder, model)
    subprocess.run(agent.argv, env=agent.environ, …)

They can ask nobody but this machine: whatever goes elsewhere is sent to a port on which nobody listens.
"""

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.installed import machine, npm
from tests.playing import Model

OPENCODE: Final = "1.18.33"  # of what opencode-ai would fetch for this machine: that brings each program twice
CLAUDE: Final = "@agentclientprotocol/claude-agent-acp@0.99.1"  # brings Claude Code with it
CODEX: Final = "@agentclientprotocol/codex-acp@2.6.0 @openai/codex@0.166.0"
GEMINI: Final = "@google/gemini-cli@0.61.0"

PATIENCE: Final = 300.0  # seconds for one of them to do its few turns, on a busy machine
LEAVING: Final = 5.0  # seconds for what the kernel takes away after an end
PROMPT: Final = "do it"  # what the model is told does not matter: it has its script


@dataclass(frozen=True)
class Agent:
    """How one of them is started."""

    argv: list[str]
    environ: dict[str, str]


def opencode(folder: Path, model: Model, mcp: Sequence[str] | None = None) -> Agent:
    """As an ACP agent; by itself with an MCP server. It asks before commands and edits, and for no tool of a server."""
    package = f"opencode-{machine()}{'-baseline' * machine().endswith('x64')}"
    programs, environ = npm("opencode", f"{package}@{OPENCODE}")
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Local",
        "options": {"baseURL": f"{model.url}/v1", "apiKey": "none"},
        "models": {"played": {"name": "Played", "tool_call": True, "limit": {"context": 100_000, "output": 8_000}}},
    }
    config: dict[str, object] = {
        "autoupdate": False,
        "share": "disabled",
        "model": "local/played",
        "small_model": "local/played",
        "enabled_providers": ["local"],
        "provider": {"local": provider},
        "permission": {"bash": "ask", "edit": "ask"},
    }
    if mcp:
        config["mcp"] = {"tarmac": {"type": "local", "command": list(mcp), "timeout": 60_000}}
    _write(folder / ".config" / "opencode" / "opencode.json", json.dumps(config))
    quiet = {f"OPENCODE_DISABLE_{each}": "1" for each in ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD")}
    program = programs.parent / package / "bin" / "opencode"
    argv = [str(program), *(["run", PROMPT] if mcp else ["acp"])]
    return Agent(argv, _private(folder, environ, quiet))


def claude(folder: Path, model: Model, mcp: Sequence[str] | None = None) -> Agent:
    """claude-agent-acp; and Claude Code itself, with the server's tools allowed."""
    programs, environ = npm("claude", CLAUDE)
    own = {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "none", "DISABLE_AUTOUPDATER": "1"}
    own |= {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "IS_SANDBOX": "1"}  # the latter: root may run it
    argv = [str(programs / "claude-agent-acp")]
    if mcp:
        program = min((programs.parent / "@anthropic-ai").glob("claude-agent-sdk-*/claude"))
        servers = {"mcpServers": {"tarmac": {"type": "stdio", "command": mcp[0], "args": list(mcp[1:])}}}
        argv = [str(program), "-p", PROMPT, "--strict-mcp-config", "--mcp-config", json.dumps(servers)]
        argv += ["--allowedTools", "mcp__tarmac"]
    return Agent(argv, _private(folder, environ, own))


def codex(folder: Path, model: Model, mcp: Sequence[str] | None = None) -> Agent:
    """codex-acp; and Codex itself."""
    programs, environ = npm("codex", CODEX)
    config = f"""
        model = "played"
        model_provider = "local"
        check_for_update_on_startup = false
        [analytics]
        enabled = false
        [model_providers.local]
        name = "Local"
        base_url = "{model.url}/v1"
        wire_api = "responses"
        env_key = "OPENAI_API_KEY"
    """
    argv = [str(programs / "codex-acp")]
    if mcp:  # required: its first turn waits for the server. approve: it is our policy that judges, not its own
        config += f"""
        [mcp_servers.tarmac]
        command = {json.dumps(mcp[0])}
        args = {json.dumps(list(mcp[1:]))}
        env_vars = ["TARMAC_STATE_DIR"]
        tool_timeout_sec = 60
        required = true
        default_tools_approval_mode = "approve"
        """
        argv = [str(programs / "codex"), "exec", "--skip-git-repo-check", PROMPT]
    _write(folder / ".codex" / "config.toml", config)
    return Agent(argv, _private(folder, environ, {"OPENAI_API_KEY": "none"}))


def gemini(folder: Path, model: Model, mcp: Sequence[str] | None = None) -> Agent:
    """As an ACP agent; by itself with an MCP server. `trust`: it is our policy that judges, not its own."""
    programs, environ = npm("gemini", GEMINI)
    server = {"command": mcp[0], "args": list(mcp[1:]), "timeout": 60_000, "trust": True} if mcp else {}
    settings = {
        "mcpServers": {"tarmac": server} if mcp else {},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
        "privacy": {"usageStatisticsEnabled": False},
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
    }
    _write(folder / ".gemini" / "settings.json", json.dumps(settings))
    own = {"GOOGLE_GEMINI_BASE_URL": model.url, "GEMINI_API_KEY": "none", "GEMINI_MODEL": "gemini-2.5-flash"}
    return Agent([str(programs / "gemini"), *(["-p", PROMPT] if mcp else ["--acp"])], _private(folder, environ, own))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _private(folder: Path, environ: dict[str, str], own: dict[str, str]) -> dict[str, str]:
    """A home of its own, nothing of the person's at the keyboard, and no way out of this machine."""
    foreign = ("XDG_", "ANTHROPIC_", "CLAUDE", "OPENAI_", "CODEX_", "GEMINI_", "GOOGLE_", "OPENCODE")
    env = {name: value for name, value in environ.items() if not name.startswith(foreign)}
    env |= {"HOME": str(folder), "PWD": str(folder / "work"), "TARMAC_STATE_DIR": str(folder / "state")}
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        env |= dict.fromkeys((name, name.upper()), "http://127.0.0.1:9")
    env |= dict.fromkeys(("no_proxy", "NO_PROXY"), "127.0.0.1,localhost")
    return env | {"PYTHONPATH": "", "TERM": "xterm-256color"} | own


@contextmanager
def leaving_nothing(folder: Path) -> Iterator[Path]:
    """A workspace in the folder; after the block no process may have the folder as its home, or be in it."""
    work = folder / "work"
    work.mkdir(parents=True, exist_ok=True)
    yield work
    end = time.monotonic() + LEAVING
    while (left := _of(folder)) and time.monotonic() < end:
        time.sleep(0.05)
    assert left == [], "processes were left behind"


def _of(folder: Path) -> list[str]:
    found = []
    home = f"HOME={folder}".encode()
    for each in Path("/proc").iterdir():
        if not each.name.isdigit() or int(each.name) == os.getpid():
            continue
        try:
            inside = (each / "cwd").readlink().is_relative_to(folder)
            if inside or home in (each / "environ").read_bytes().split(b"\0"):
                found.append(f"{each.name}: {(each / 'cmdline').read_bytes().replace(bytes(1), b' ').decode()}")
        except OSError:  # it is gone, or not ours
            pass
    return found
