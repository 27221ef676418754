"""Every setting: its name, what it may be, its default, and whether a workspace may tighten it.

The defaults of policy, terminals, tools, sandbox and models are those of their own packages. They stand here again so
that to know what can be set costs no import of what it is set for; a test compares them.
"""

from dataclasses import dataclass
from functools import cache

from tarmac.config.kinds import (
    Kind,
    Value,
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
from tarmac.config.tightening import LEVELS, Way


@dataclass(frozen=True, slots=True)
class Key:
    """One setting."""

    name: str  # "limits.max_cost"
    kind: Kind
    default: Value
    about: str
    way: Way | None = None  # how a workspace may tighten it; None: it may not set it
    secret: bool = False

    @property
    def variable(self) -> str:
        """The environment variable that sets it; empty when none does."""
        return f"TARMAC_{self.name.upper().replace('.', '_')}" if self.kind.from_text and not self.secret else ""


def _is_url(value: str) -> bool:
    return value.startswith(("http://", "https://")) and value.isprintable() and " " not in value


def _names_model(value: str) -> bool:
    provider, slash, name = value.partition("/")
    return bool(provider and slash and name) and value.isprintable()


def _nearest_model(value: str) -> str:
    from tarmac.models.catalog import nearest_spec

    return nearest_spec(value)


def _is_command(value: str) -> bool:
    import shlex

    try:
        return bool(shlex.split(value))
    except ValueError:  # a quote that is not closed
        return False


_URL = text("an address that begins with http:// or https://", _is_url)
_NAMES = "a table of names and values"
_LINE = "a list of commands, each by its first words"

KEYS = (
    # Whom to ask, and how it shall be
    Key(
        "model",
        optional(text("provider/name", _names_model, _nearest_model)),
        None,
        "the model to ask, as provider/name",
    ),
    Key("base_url", optional(_URL), None, "where the server of that provider is, in place of its usual address"),
    Key(
        "mode",
        text("the slug of a mode", lambda value: value.replace("-", "").isalnum()),
        "code",
        "the mode a task begins in",
    ),
    Key("language", text(), "", "the language the model shall speak"),
    Key("instructions", text(), "", "what the model is told in every mode"),
    Key("auto", choice(*LEVELS), "ask", "what runs without asking; each level includes those before it", Way.SAFER),
    Key("approval_timeout", optional(seconds()), None, "a question nobody answers for so long counts as skipped"),
    Key(
        "keys",
        table("a table of providers and their keys", lambda _, key: bool(key)),
        {},
        "keys, by provider",
        secret=True,
    ),
    # When a task stops by itself
    Key("limits.max_cost", optional(dollars()), None, "US dollars of one run", Way.LOWER),
    Key("limits.max_requests", optional(integer(1)), None, "requests to the model, also those that fail", Way.LOWER),
    Key("limits.max_turns", optional(integer(1)), None, "answers of the model", Way.LOWER),
    Key(
        "limits.max_seconds",
        optional(seconds()),
        None,
        "of its work; the clock stands while you are asked",
        Way.LOWER,
    ),
    Key("limits.max_auto_requests", optional(integer(1)), None, "requests, then you are asked to go on", Way.LOWER),
    Key("limits.max_auto_cost", optional(dollars()), None, "US dollars, then you are asked to go on", Way.LOWER),
    Key("limits.max_retries", integer(0, 100), 3, "of a request that failed, without asking", Way.LOWER),
    Key("limits.max_mistakes", optional(integer(1)), 3, "of the model in a row, before the person is asked", Way.LOWER),
    Key("limits.max_repetitions", optional(integer(2)), 3, "the so-manieth identical call is asked about", Way.LOWER),
    # What may run
    Key(
        "policy.auto_approve_safe_commands", boolean(), True, "what is proven to only read runs without asking", Way.OFF
    ),
    Key("policy.auto_approve_read", boolean(), False, "tools read files of the workspace without asking", Way.OFF),
    Key("policy.auto_approve_write", boolean(), False, "tools change files of the workspace without asking", Way.OFF),
    Key("policy.auto_approve_write_outside", boolean(), False, "tools change files elsewhere without asking", Way.OFF),
    Key("policy.auto_approve_browser", boolean(), False, "the browser is used without asking", Way.OFF),
    Key("policy.auto_approve_mcp", boolean(), False, "tools of MCP servers are used without asking", Way.OFF),
    Key("policy.auto_approve_modes", boolean(), False, "the model switches its mode without asking", Way.OFF),
    Key("policy.auto_approve_subtasks", boolean(), False, "the model begins subtasks without asking", Way.OFF),
    Key("policy.auto_approve_retries", boolean(), False, "a failed request is tried again without end", Way.OFF),
    Key("policy.auto_approve_questions", boolean(), False, "the model's first suggestion is taken as answer", Way.OFF),
    Key("policy.question_timeout", seconds(), 60.0, "after so long without your answer, unless you begin to type"),
    Key("policy.ask_medium", boolean(), True, "known commands of medium risk are asked about", Way.ON),
    Key("policy.allow", texts(_LINE, _is_command), (), "commands that run without asking, beside those in policy.toml"),
    Key("policy.deny", texts(_LINE, _is_command), (), "commands that are never run", Way.MORE),
    Key("policy.longest_command", integer(1), 32_768, "characters; what is longer is asked about unread", Way.LOWER),
    Key("policy.longest_allowed", integer(1), 4_096, "characters of a line that is allowed by itself", Way.LOWER),
    Key("policy.most_parts", integer(1), 50, "simple commands in one line", Way.LOWER),
    Key("policy.deepest_nesting", integer(1), 40, "of brackets, blocks and substitutions", Way.LOWER),
    Key("policy.parse_timeout", seconds(), 0.4, "for the parser"),
    Key("policy.cache_size", integer(0), 512, "parsed lines that are remembered"),
    # A sandbox for commands
    Key("sandbox.enabled", boolean(), False, "commands of agents run in a sandbox, or not at all", Way.ON),
    Key("sandbox.network", boolean(), False, "there is a network in it", Way.OFF),
    Key("sandbox.unix_sockets", boolean(), False, "sockets may be made in it", Way.OFF),
    Key("sandbox.memory", optional(integer(1 << 20)), 4 << 30, "bytes, of all its processes together", Way.LOWER),
    Key("sandbox.processes", optional(integer(1)), 1024, "at a time", Way.LOWER),
    Key("sandbox.writable", paths(), (), "more folders that may be changed"),
    Key("sandbox.hidden", paths(), (), "more that may not be seen", Way.MORE),
    # Terminals
    Key("terminals.shell_integration_disabled", boolean(), False, "run every command as a process of its own"),
    Key("terminals.shell_integration_timeout", seconds(), 5.0, "for a shell to come up"),
    Key("terminals.start_up_files", boolean(), True, "read ~/.bashrc and its kin"),
    Key("terminals.command_delay", seconds(zero=True), 0.0, "before a command is sent"),
    Key("terminals.run_timeout", seconds(), 30.0, "then a command in a persistent terminal is left running"),
    Key("terminals.once_timeout", seconds(), 60.0, "then a temporary command is interrupted"),
    Key("terminals.interactive_timeout", seconds(), 60.0, "of a call with answers to expected questions"),
    Key("terminals.idle_timeout", seconds(), 300.0, "without output, then the wait ends"),
    Key("terminals.interrupt_grace", seconds(zero=True), 0.5, "from Ctrl-C to terminate"),
    Key("terminals.terminate_grace", seconds(zero=True), 1.0, "from terminate to kill"),
    Key("terminals.hold_timeout", seconds(), 30.0, "for a person to finish their line"),
    Key("terminals.reuse_related_only", boolean(), True, "a terminal moves only to a parent or child of where it is"),
    Key("terminals.max_directory_changes", integer(0), 5, "of a terminal, for reuse"),
    Key("terminals.warm_pool", integer(0, 64), 1, "terminals that wait ready-made", Way.LOWER),
    Key("terminals.max_per_task", integer(1), 5, "terminals of one task", Way.LOWER),
    Key("terminals.max_terminals", integer(1), 64, "of all tasks", Way.LOWER),
    Key("terminals.lease_timeout", seconds(), 30.0, "for a terminal to become free"),
    Key("terminals.terminal_idle_timeout", seconds(), 1800.0, "then an unused terminal is closed"),
    Key("terminals.output_line_limit", integer(1), 500, "lines of output in a result"),
    Key("terminals.output_character_limit", integer(1), 50_000, "characters of output in a result"),
    Key("terminals.output_head_share", share(), 0.7, "of what is kept, from the beginning; the rest from the end"),
    Key("terminals.output_memory", integer(1), 1 << 20, "bytes of a command's output in memory"),
    Key("terminals.spool_limit", integer(1), 64 << 20, "bytes of a command's output on disk"),
    Key("terminals.spool_directory", optional(path()), None, "where output is kept; none: in Tarmac's state directory"),
    Key(
        "terminals.spool_days",
        number("days, a number not below 0", lambda value: 0 <= value <= 36_500),
        7.0,
        "it is kept",
    ),
    Key("terminals.display_interval", seconds(zero=True), 0.1, "between two updates of a display"),
    Key("terminals.compress_progress_bar", boolean(), True, "progress bars become their last state"),
    Key("terminals.rows", integer(1, 65_535), 40, "of a terminal"),
    Key("terminals.columns", integer(1, 65_535), 120, "of a terminal"),
    Key(
        "terminals.environment",
        table(_NAMES, lambda name, _: bool(name) and "=" not in name),
        {},
        'variables for commands; "" unsets',
    ),
    Key(
        "terminals.secret_variables",
        texts("a list of names, * for any part"),
        ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "TARMAC_*"),
        "variables that no command gets; those with providers' keys are added by themselves",
        Way.MORE,
    ),
    Key("terminals.zsh_clear_eol_mark", boolean(), True, "PROMPT_EOL_MARK= for zsh"),
    Key("terminals.zsh_oh_my", boolean(), False, "ITERM_SHELL_INTEGRATION_INSTALLED=Yes"),
    Key("terminals.zsh_p10k", boolean(), False, "POWERLEVEL9K_TERM_SHELL_INTEGRATION=true"),
    Key("terminals.zdotdir", boolean(), False, "a private ZDOTDIR"),
    Key("terminals.powershell_counter", boolean(), False, "a counter against PowerShell's lost output"),
    # Tools
    Key("tools.command_timeout", seconds(), 60.0, "then a command of the model is left running"),
    Key("tools.longest_timeout", seconds(), 600.0, "that a model may ask for", Way.LOWER),
    Key("tools.wait_timeout", seconds(), 30.0, "of wait_for_terminal"),
    Key("tools.files_per_read", integer(1), 5, "in one call of read_file"),
    Key("tools.largest_image", integer(1), 5 << 20, "bytes"),
    Key("tools.images_per_read", integer(1), 20 << 20, "bytes of all together"),
    Key("tools.fuzzy_threshold", share(), 0.9, "how alike a place must be for an edit", Way.HIGHER),
    Key("tools.news_characters", integer(0), 8_000, "of background terminals' output, a turn"),
    # Editors
    Key("acp.client_terminals", boolean(), False, "approved commands run in the editor's own terminals, if it has any"),
    # Models
    Key(
        "models.base_urls",
        table("a table of providers and addresses", lambda _, url: _is_url(url)),
        {},
        "where providers are",
    ),
    Key("models.context_window", optional(integer(1)), None, "tokens, in place of what is known of the model"),
    Key("models.max_output", optional(integer(1)), None, "tokens of an answer", Way.LOWER),
    Key("models.images", optional(boolean()), None, "whether the model may be shown images"),
    Key("models.native_tools", optional(boolean()), None, "whether it has tool calls of its own"),
    Key("models.reasoning", optional(choice("off", "low", "medium", "high")), None, "how much it shall think"),
    Key("models.connect_timeout", seconds(), 10.0, "to reach it"),
    Key("models.read_timeout", seconds(), 180.0, "without a byte from it"),
    Key("models.price_input", optional(dollars()), None, "for a million tokens, where nobody knows its price"),
    Key("models.price_output", optional(dollars()), None, "for a million tokens; both or neither"),
    Key("models.price_cache_reads", optional(dollars()), None, "none: as input"),
    Key("models.price_cache_writes", optional(dollars()), None, "none: as input"),
)


# What is said of one model, and not of whichever is asked.
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
    """All of them."""
    return {key.name: key for key in KEYS}
