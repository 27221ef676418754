"""Every setting: its name, type, default and description, and how a workspace may tighten it.

The defaults repeat those in the settings of each package, so that this module imports none of them. A test compares
them.
"""

import re
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import cast

from tarmac.config.value_types import (
    Value,
    ValueType,
    boolean,
    choice,
    dollars,
    integer,
    number,
    optional,
    path,
    paths,
    seconds,
    share,
    table,
    text,
    texts,
)

LEVELS = ("plan", "ask", "edits", "workspace", "all")  # of `auto`, the tightest first
OLDER_NAMES = {"read": "ask", "edit": "edits", "safe": "workspace"}  # of its levels


class Tightening(Enum):
    """The direction in which a setting gets tighter."""

    LOWER = "a lower value"  # none is the highest value
    HIGHER = "a higher value"
    OFF = "false"
    ON = "true"
    SAFER = "an earlier level"
    MORE = "more of them"  # its items are added


@dataclass(frozen=True, slots=True)
class Key:
    """One setting."""

    name: str  # "limits.max_cost"
    kind: ValueType
    default: Value
    about: str
    way: Tightening | None = None  # how a workspace may change it; None: not at all
    secret: bool = False

    @property
    def variable(self) -> str:
        """The environment variable for it; empty if there is none."""
        return f"TARMAC_{self.name.upper().replace('.', '_')}" if self.kind.from_text and not self.secret else ""


def _is_url(value: str) -> bool:
    return value.startswith(("http://", "https://")) and value.isprintable() and " " not in value


def _names_model(value: str) -> bool:
    provider, slash, name = value.partition("/")
    return bool(provider and slash and name) and value.isprintable()


def _nearest_model(value: str) -> str:
    from tarmac.models.model_catalog import nearest_spec

    return nearest_spec(value)


def _is_diagnostic(value: str) -> bool:
    pattern, _, command = value.partition(":")
    return bool(pattern.strip()) and _is_command(command)


def _is_command(value: str) -> bool:
    import shlex

    try:
        return bool(shlex.split(value))
    except ValueError:  # an unclosed quote
        return False


AGENT_FIELDS = ("command", "env", "name")
_AGENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_VARIABLE = re.compile(r"(?!TARMAC_)[A-Za-z_][A-Za-z0-9_]*")


def _agents() -> ValueType:
    """Tables that say how to start an agent, by name. They can only be set in a file."""
    words = 'tables such as [agents.opencode] with command = ["opencode", "acp"]'
    command_type = texts(
        'a list such as ["opencode", "acp"]; the program is a name, an absolute path or ~/…', lambda _: True
    )
    types = {
        "command": command_type,
        "env": table(
            "a table of variables and their values, none of them TARMAC_*", lambda name, _: _is_variable(name)
        ),
        "name": text("text in one line", str.isprintable),
    }

    def check(value: Value) -> Value:
        if not isinstance(value, dict):
            raise ValueError(f"must be {words}")  # the value may have a key, so it is not shown
        return {name: check_agent(name, each) for name, each in value.items()}

    def check_agent(name: str, given: Value) -> Value:
        if not _AGENT_NAME.fullmatch(name):
            raise ValueError(f"must be {words}: a name has only letters, digits, - and _, not `{name}`")
        if not isinstance(given, dict):
            raise ValueError(f"must be {words}: `{name}` is not a table")
        for field in given:
            if field not in AGENT_FIELDS:
                raise ValueError(f"must be {words}: `{name}.{field}` is unknown; there are {', '.join(AGENT_FIELDS)}")
        found = {}
        for field, each in given.items():
            try:
                found[field] = types[field].check(each)
            except ValueError as error:
                raise ValueError(f"must be {words}: `{name}.{field}` {error}") from None
        argv = cast(tuple[str, ...], found.get("command", ()))
        if not argv or not argv[0].strip():
            raise ValueError(f"must be {words}: `{name}` has no command")
        if "/" in argv[0] and not argv[0].startswith(("/", "~/")):  # it would be a file of the workspace
            raise ValueError(f"must be {words}: `{name}.command` must be {command_type.words}")
        return found

    def parse(_: str) -> Value:
        raise ValueError("can only be set in a file")

    return ValueType(words, check, parse, from_text=False)


def _is_variable(name: str) -> bool:
    return _VARIABLE.fullmatch(name) is not None


_URL = text("a URL that begins with http:// or https://", _is_url)
_NAMES = "a table of names and values"
_LINE = "a list of commands, each by its first words"

KEYS = (
    # Task
    Key("model", optional(text("provider/name", _names_model, _nearest_model)), None, "the model, as provider/name"),
    Key(
        "image_model",
        optional(text("provider/name", _names_model)),
        None,
        "the model that makes pictures, as provider/name; none: generate_image is not offered",
    ),
    Key("base_url", optional(_URL), None, "base URL of the model's provider, instead of its default"),
    Key(
        "mode",
        text("the slug of a mode", lambda value: value.replace("-", "").isalnum()),
        "code",
        "first mode of a task",
    ),
    Key("language", text(), "", "language of the model"),
    Key("instructions", text(), "", "custom instructions for every mode"),
    Key(
        "auto",
        choice(*LEVELS, older=OLDER_NAMES),
        "ask",
        "what runs without asking; each level includes the previous ones",
        Tightening.SAFER,
    ),
    Key("auto_condense", boolean(), True, "condense a conversation before it exceeds the context window"),
    Key("auto_condense_percent", integer(5, 100), 80, "per cent of the context window at which that happens"),
    Key("approval_timeout", optional(seconds()), None, "seconds until an unanswered question counts as skipped"),
    Key(
        "keys",
        table("a table of providers and their keys", lambda _, key: bool(key)),
        {},
        "keys, by provider",
        secret=True,
    ),
    # Limits of a task
    Key("limits.max_cost", optional(dollars()), None, "US dollars for one run", Tightening.LOWER),
    Key(
        "limits.max_requests",
        optional(integer(1)),
        None,
        "requests to the model, including failed ones",
        Tightening.LOWER,
    ),
    Key("limits.max_turns", optional(integer(1)), None, "responses of the model", Tightening.LOWER),
    Key(
        "limits.max_seconds", optional(seconds()), None, "working time; it stops while you are asked", Tightening.LOWER
    ),
    Key(
        "limits.max_auto_requests",
        optional(integer(1)),
        None,
        "requests until you are asked to continue",
        Tightening.LOWER,
    ),
    Key(
        "limits.max_auto_cost",
        optional(dollars()),
        None,
        "US dollars until you are asked to continue",
        Tightening.LOWER,
    ),
    Key("limits.max_retries", integer(0, 100), 3, "automatic retries of a failed request", Tightening.LOWER),
    Key(
        "limits.max_mistakes",
        optional(integer(1)),
        3,
        "mistakes of the model in a row until you are asked",
        Tightening.LOWER,
    ),
    Key(
        "limits.max_repetitions",
        optional(integer(2)),
        3,
        "identical calls in a row until you are asked",
        Tightening.LOWER,
    ),
    # Policy
    Key(
        "policy.auto_approve_safe_commands",
        boolean(),
        True,
        "run commands that are proven read-only without asking",
        Tightening.OFF,
    ),
    Key("policy.auto_approve_read", boolean(), True, "read files of the workspace without asking", Tightening.OFF),
    Key("policy.auto_approve_write", boolean(), False, "change files of the workspace without asking", Tightening.OFF),
    Key("policy.auto_approve_write_outside", boolean(), False, "change other files without asking", Tightening.OFF),
    Key("policy.auto_approve_browser", boolean(), False, "use the browser without asking", Tightening.OFF),
    Key("policy.auto_approve_mcp", boolean(), False, "use tools of MCP servers without asking", Tightening.OFF),
    Key("policy.auto_approve_modes", boolean(), False, "switch modes without asking", Tightening.OFF),
    Key("policy.auto_approve_subtasks", boolean(), False, "start subtasks without asking", Tightening.OFF),
    Key("policy.auto_approve_retries", boolean(), False, "retry failed requests without limit", Tightening.OFF),
    Key(
        "policy.auto_approve_questions",
        boolean(),
        False,
        "answer a question of the model with its first suggestion",
        Tightening.OFF,
    ),
    Key("policy.question_timeout", seconds(), 60.0, "seconds before that, unless you begin to type"),
    Key("policy.ask_medium", boolean(), True, "ask about known commands of medium risk", Tightening.ON),
    Key("policy.allow", texts(_LINE, _is_command), (), "commands that run without asking, in addition to policy.toml"),
    Key("policy.ask", texts(_LINE, _is_command), (), "commands that are always asked about", Tightening.MORE),
    Key("policy.deny", texts(_LINE, _is_command), (), "commands that never run", Tightening.MORE),
    Key(
        "policy.longest_command",
        integer(1),
        32_768,
        "characters; a longer command is not parsed, and always asks",
        Tightening.LOWER,
    ),
    Key(
        "policy.longest_allowed",
        integer(1),
        4_096,
        "characters; a longer command is never allowed automatically",
        Tightening.LOWER,
    ),
    Key("policy.most_parts", integer(1), 50, "simple commands in one line", Tightening.LOWER),
    Key("policy.deepest_nesting", integer(1), 40, "levels of brackets, blocks and substitutions", Tightening.LOWER),
    Key("policy.parse_timeout", seconds(), 0.4, "seconds for the parser"),
    Key("policy.cache_size", integer(0), 512, "parsed lines to cache"),
    # Sandbox
    Key("sandbox.enabled", boolean(), False, "run commands of agents only in a sandbox", Tightening.ON),
    Key("sandbox.network", boolean(), False, "allow network access in the sandbox", Tightening.OFF),
    Key("sandbox.unix_sockets", boolean(), False, "allow Unix sockets in the sandbox", Tightening.OFF),
    Key("sandbox.memory", optional(integer(1 << 20)), 4 << 30, "bytes for all processes together", Tightening.LOWER),
    Key("sandbox.processes", optional(integer(1)), 1024, "number of processes", Tightening.LOWER),
    Key("sandbox.writable", paths(), (), "additional writable folders"),
    Key("sandbox.hidden", paths(), (), "additional hidden paths", Tightening.MORE),
    # Terminals
    Key("terminals.shell_integration_disabled", boolean(), False, "run every command as a separate process"),
    Key("terminals.shell_integration_timeout", seconds(), 5.0, "seconds for a shell to start"),
    Key("terminals.shell", optional(text()), None, "the shell of commands: bash, zsh, fish or a path; none: bash"),
    Key("terminals.path", paths(), (), "folders in front of PATH for commands of agents"),
    Key("terminals.start_up_files", boolean(), True, "read ~/.bashrc and similar files"),
    Key("terminals.command_delay", seconds(zero=True), 0.0, "seconds before a command is sent"),
    Key("terminals.run_timeout", seconds(), 30.0, "seconds until a command in a persistent terminal is left running"),
    Key("terminals.once_timeout", seconds(), 60.0, "seconds until a temporary command is interrupted"),
    Key("terminals.interactive_timeout", seconds(), 60.0, "seconds for a call with prepared answers"),
    Key("terminals.idle_timeout", seconds(), 300.0, "seconds without output until a wait ends"),
    Key("terminals.interrupt_grace", seconds(zero=True), 0.5, "seconds from Ctrl-C to SIGTERM"),
    Key("terminals.terminate_grace", seconds(zero=True), 1.0, "seconds from SIGTERM to SIGKILL"),
    Key("terminals.hold_timeout", seconds(), 30.0, "seconds to wait for a user who is typing"),
    Key("terminals.reuse_related_only", boolean(), True, "move a terminal only to a parent or child of its directory"),
    Key("terminals.max_directory_changes", integer(0), 5, "moves of a terminal for reuse"),
    Key("terminals.warm_pool", integer(0, 64), 1, "terminals that are started in advance", Tightening.LOWER),
    Key("terminals.max_per_task", integer(1), 5, "terminals of one task", Tightening.LOWER),
    Key("terminals.max_terminals", integer(1), 64, "terminals of all tasks", Tightening.LOWER),
    Key("terminals.lease_timeout", seconds(), 30.0, "seconds to wait for a free terminal"),
    Key("terminals.terminal_idle_timeout", seconds(), 1800.0, "seconds until an unused terminal is closed"),
    Key("terminals.outlive", boolean(), False, "terminals of tasks outlive the program"),
    Key("terminals.outlive_seconds", seconds(), 86400.0, "seconds until a terminal that no program uses is ended"),
    Key("terminals.output_line_limit", integer(1), 500, "lines of output in a result"),
    Key("terminals.output_character_limit", integer(1), 50_000, "characters of output in a result"),
    Key("terminals.output_head_share", share(), 0.7, "share of that from the beginning; the rest is from the end"),
    Key("terminals.output_memory", integer(1), 1 << 20, "bytes of a command's output in memory"),
    Key("terminals.spool_limit", integer(1), 64 << 20, "bytes of a command's output on disk"),
    Key("terminals.spool_directory", optional(path()), None, "folder for output; none: in the state directory"),
    Key(
        "terminals.spool_days",
        number("days, a number not below 0", lambda value: 0 <= value <= 36_500),
        7.0,
        "days to keep output",
    ),
    Key("terminals.display_interval", seconds(zero=True), 0.1, "seconds between updates of a display"),
    Key("terminals.compress_progress_bar", boolean(), True, "keep only the last state of a progress bar"),
    Key("terminals.rows", integer(1, 65_535), 40, "rows of a terminal"),
    Key("terminals.columns", integer(1, 65_535), 120, "columns of a terminal"),
    Key(
        "terminals.environment",
        table(_NAMES, lambda name, _: bool(name) and "=" not in name),
        {},
        'variables for commands; "" unsets one',
    ),
    Key(
        "terminals.secret_variables",
        texts("a list of names, * for any part"),
        ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "TARMAC_*"),
        "variables that no command gets; keys of providers are always included",
        Tightening.MORE,
    ),
    Key(
        "terminals.pass_secrets",
        texts("a list of names, * for any part"),
        (),
        "common secrets (AWS_*, *_TOKEN, *_API_KEY, DATABASE_URL …) that commands of agents still get",
    ),
    Key("terminals.zsh_clear_eol_mark", boolean(), True, "set PROMPT_EOL_MARK= for zsh"),
    Key("terminals.zsh_oh_my", boolean(), False, "set ITERM_SHELL_INTEGRATION_INSTALLED=Yes"),
    Key("terminals.zsh_p10k", boolean(), False, "set POWERLEVEL9K_TERM_SHELL_INTEGRATION=true"),
    Key("terminals.zdotdir", boolean(), False, "use a private ZDOTDIR"),
    Key("terminals.powershell_counter", boolean(), False, "add a counter against lost output in PowerShell"),
    # Tools
    Key("tools.command_timeout", seconds(), 60.0, "seconds until a command of the model is left running"),
    Key("tools.longest_timeout", seconds(), 600.0, "seconds that a model may ask for", Tightening.LOWER),
    Key("tools.wait_timeout", seconds(), 30.0, "seconds for wait_for_terminal"),
    Key("tools.files_per_read", integer(1), 5, "files in one call of read_file"),
    Key("tools.largest_image", integer(1), 5 << 20, "bytes of one image"),
    Key("tools.images_per_read", integer(1), 20 << 20, "bytes of all images in one call"),
    Key("tools.fuzzy_threshold", share(), 0.9, "similarity that an edit needs to match", Tightening.HIGHER),
    Key("tools.news_characters", integer(0), 8_000, "characters of background output in a turn"),
    Key("tools.browser", boolean(), False, "offer browser_action, which uses Chromium", Tightening.OFF),
    Key(
        "tools.wake_on_exit",
        boolean(),
        True,
        "continue a task at rest when a command that it left running ends or asks for input",
        Tightening.OFF,
    ),
    Key(
        "tools.diagnostics",
        texts("a text such as `*.py: ruff check {file}`", _is_diagnostic),
        (),
        "commands that check a file after an edit",
    ),
    # Other machines
    Key(
        "places",
        table("a table of names and addresses", lambda name, address: ":" not in name and ":" in address),
        {},
        "machines and containers for `--on`, by name",
    ),
    # Editors
    Key("acp.client_terminals", boolean(), False, "run approved commands in the editor's terminals, if it has any"),
    # Agents of others
    Key("agents", _agents(), {}, "agents for `tarmac host NAME`, by name: `command`, and if wanted `env` and `name`"),
    # Models
    Key(
        "models.base_urls",
        table("a table of providers and addresses", lambda _, url: _is_url(url)),
        {},
        "base URLs, by provider",
    ),
    Key("models.context_window", optional(integer(1)), None, "tokens, instead of the known value"),
    Key("models.max_output", optional(integer(1)), None, "tokens in a response", Tightening.LOWER),
    Key("models.images", optional(boolean()), None, "whether the model accepts images"),
    Key("models.native_tools", optional(boolean()), None, "whether the model has native tool calls"),
    Key("models.reasoning", optional(choice("off", "low", "medium", "high")), None, "how much the model reasons"),
    Key("models.connect_timeout", seconds(), 10.0, "seconds to connect"),
    Key("models.read_timeout", seconds(), 180.0, "seconds without data"),
    Key("models.price_input", optional(dollars()), None, "US dollars for a million tokens, if the price is unknown"),
    Key("models.price_output", optional(dollars()), None, "the same for output; set both or neither"),
    Key("models.price_cache_reads", optional(dollars()), None, "none: the price of input"),
    Key("models.price_cache_writes", optional(dollars()), None, "none: the price of input"),
)


# Settings that describe one model, and do not apply to others.
OF_A_MODEL = (
    "base_url",
    "models.context_window",
    "models.max_output",
    "models.images",
    "models.native_tools",
    "models.price_input",
    "models.price_output",
    "models.price_cache_reads",
    "models.price_cache_writes",
)


@cache
def by_name() -> dict[str, Key]:
    """All settings, by name."""
    return {key.name: key for key in KEYS}


class WouldLoosen(Exception):
    """The new value allows more than the current one."""


def tightened(way: Tightening, now: Value, wanted: Value) -> Value:
    """The value after a workspace asked for `wanted`. WouldLoosen if that allows more than `now`."""
    match way:
        case Tightening.MORE:
            ours, theirs = cast(tuple[Value, ...], now), cast(tuple[Value, ...], wanted)
            return (*ours, *(each for each in dict.fromkeys(theirs) if each not in ours))
        case Tightening.LOWER:
            loosens = now is not None and (wanted is None or cast(float, wanted) > cast(float, now))
        case Tightening.HIGHER:
            loosens = cast(float, wanted) < cast(float, now)
        case Tightening.OFF:
            loosens = bool(wanted) and not now
        case Tightening.ON:
            loosens = bool(now) and not wanted
        case Tightening.SAFER:
            loosens = LEVELS.index(cast(str, wanted)) > LEVELS.index(cast(str, now))
    if loosens:
        raise WouldLoosen
    return now if wanted == now else wanted
