"""The command line of every verb, described once. argparse parses it and writes the help; completion.py reads it too.

parse("run", arguments) → {option: its values}, words        HelpShown after --help, BadRequest with a hint
"""

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NoReturn

from tarmac.cli.exit_status import complain
from tarmac.cli.verb_list import VERBS, HelpShown
from tarmac.errors import BadRequest, nearest

Given = dict[str, list[str]]
LEVELS: Final = ("plan", "ask", "edits", "workspace", "all", "read", "edit", "safe")  # the last three: older names
MCP_LEVELS: Final = ("plan", "ask", "workspace", "all")
SHELLS: Final = ("bash", "zsh", "fish", "sh", "pwsh")
WIDEST: Final = 88  # columns of a help page


@dataclass(frozen=True, slots=True)
class Option:
    """One option. Without a `value` it is a switch."""

    name: str
    what: str
    value: str = ""  # DIR and FILE complete as such
    values: tuple[str, ...] = ()  # what completion offers


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """A verb: its usage, its options, and what else its help says."""

    usage: str
    about: str = ""  # "": its line in VERBS
    options: Sequence[Option] = ()
    more: str = ""
    actions: tuple[str, ...] = ()  # the first word is one of these
    names: str = ""  # the command that lists what the first word can be, one a line, followed by a space
    command: bool = False  # the first word begins a command: what follows is not ours


_JSON = Option("json", "print one JSON object a line (docs/json.md)")
_MODEL = [
    Option("model", "the model, such as anthropic/NAME or ollama/NAME; `tarmac models` lists them", "PROVIDER/NAME"),
    Option("base-url", "the address of the model's provider", "URL"),
    Option("shell", "the shell of commands: bash, zsh, fish or a path", "SHELL"),
]
_AUTO = Option("auto", "what runs without asking: plan, ask, edits, workspace or all [ask]", "LEVEL", LEVELS[:5])
_CWD = Option("cwd", "the folder to work in [here]", "DIR")
_ON = Option("on", "work at another place: ssh://host, docker://container, or a name (docs/fleet.md)", "PLACE")
_RUN = [
    *_MODEL,
    _ON,
    Option("mode", "code, architect, ask, debug, orchestrator, or one of your own [code]", "MODE"),
    _CWD,
    Option("image", "a picture for the model; may be repeated", "FILE"),
    _AUTO,
    Option("max-cost", "stop before the cost exceeds this many US dollars", "X"),
    Option("max-turns", "stop after this many answers of the model", "N"),
    Option("script", "play a script instead of a model (docs/models.md)", "FILE"),
    Option("print", "print one answer and exit; ask no questions"),
    _JSON,
]
_RUN_STATUS = """\
exit status: 0 completed; 1 failed; 2 the arguments or the configuration are invalid;
5 a limit was reached; 123 the place of --on failed; 130 interrupted"""
_COMMAND = "COMMAND is one argument with shell text, or several arguments that are its words."

_WEB = Verb(
    usage="tarmac web [OPTIONS]",
    about="Serve Tarmac's page on this machine: tasks, questions, the agent's terminals (live), settings and usage. "
    " `tarmac web` opens it in a browser, `tarmac serve` does not. It runs until Ctrl-C.",
    options=[
        Option("port", "the port [the last one used, if it is free]; 0 takes a free one", "N"),
        Option("no-browser", "only print the address"),
        Option("lan", "also let devices of this network connect; you confirm each; not encrypted"),
        Option("new", "start another server, even if one is running"),
        *_MODEL,
        Option("mode", "the mode of new tasks [code]", "MODE"),
        _CWD,
        _AUTO,
        Option("max-cost", "stop a task before its cost exceeds this many US dollars", "X"),
        Option("script", "play a script instead of a model (docs/models.md)", "FILE"),
    ],
    more="""\
The address is printed on a line of its own. It works for one browser, once, within ten
minutes; Enter prints another. Processes that an agent runs can't connect. A second
`tarmac web` opens another window of the running server. Tasks are kept when the server
ends. The next one opens those that are not finished, and asks whether to continue.

exit status: 0; 2 bad arguments; 128 + the number of a signal""",
)

TABLE: Final[dict[str, Verb]] = {
    "run": Verb(
        usage='tarmac run [OPTIONS] ["TEXT"]\n       tarmac run [OPTIONS] -    (the text comes from standard input)',
        about="Give a task to an agent and watch it work. Without TEXT, it opens a session.",
        options=[
            *_RUN,
            Option("server", "run it in the running `tarmac serve`, and join it; it continues when you leave"),
            Option("detach", "like --server, but print its id and exit"),
        ],
        more=f"""\
Answer questions with single keys (? lists them) or with text for the model. While the
agent works, Enter queues what you typed. @shot.png attaches a picture. If a command asks
for a password, only that command gets it.
In `tarmac run … | tee log` you are asked on the terminal. Without a terminal, or with
--json or --print, every question is answered with no, and the model is told.

Ctrl-C stops the current command or answer, and you can say what to do instead. Ctrl-D
leaves. `tarmac resume` continues the task later.

{_RUN_STATUS}""",
    ),
    "resume": Verb(
        usage='tarmac resume [OPTIONS] [ID ["TEXT"]]',
        about="Continue an earlier task: after a limit, an interrupt or a crash, or with a new message.",
        options=[*_RUN, Option("go", "continue at once, without waiting for a message")],
        more=f"""\
Without ID, you choose one of this folder's tasks at a terminal; elsewhere it is the newest
that is not completed. TEXT is sent to the model first. Without TEXT a recap is shown, and
nothing is sent until you say something. Commands that were running have ended, and the
model is told how interrupted calls ended.

{_RUN_STATUS}""",
    ),
    "join": Verb(
        usage='tarmac join [OPTIONS] [ID ["TEXT"]]',
        about="Join a task that another process of yours has open: a session, an editor, the page or `tarmac serve`.",
        options=[_JSON],
        more="""\
You see what the task does, send it messages and answer its questions. The first answer
counts. Without ID it is the running task, or you choose one. TEXT is sent to it first.
Ctrl-C stops what the task does now. Ctrl-D leaves it running. Processes that an agent
runs can't join.

exit status: as `tarmac run`""",
    ),
    "models": Verb(
        usage="tarmac models [--provider P [--base-url URL]] [--json]",
        about="List the models that you can use, with their context window and their price for a million tokens.",
        options=[
            Option("provider", "only this one [all with a key, and servers on this machine]", "P"),
            Option("base-url", "its address", "URL"),
            _JSON,
        ],
        more="exit status: 0; 1 when a provider did not answer, or there is none; 2 bad arguments",
    ),
    "demo": Verb(
        usage="tarmac demo [--yes] [--keep] [--fast] [--json]",
        about="Watch Tarmac repair a small Python project in a scratch folder. The model is a script that was written "
        "beforehand; the terminals, files, tests and judgements are real. No model and no network are needed.",
        options=[
            Option("yes", "answer the question with yes; needed without a terminal"),
            Option("keep", "keep the project and print its path"),
            Option("fast", "no pauses between words"),
            _JSON,
        ],
        more="exit status: 0 the task was completed and the tests pass; 1 not; 130 interrupted",
    ),
    "web": _WEB,
    "serve": replace(_WEB, usage="tarmac serve [OPTIONS]"),
    "tasks": Verb(
        usage="""\
tarmac tasks [list] [--workspace DIR] [--sort KEY] [--limit N | --all]
                    [--json]
       tarmac tasks show | audit | usage | prompt ID [--json]
       tarmac tasks search TEXT [--limit N] [--json]
       tarmac tasks export ID [--format F] [--to PATH] [--force]
       tarmac tasks export --settings --to DIR [--force]
       tarmac tasks pause | unpause | cancel | clear ID... [--json]
       tarmac tasks delete ID... [--yes] [--json]
       tarmac tasks checkpoints ID [--json]
       tarmac tasks diff ID [--to N] [--json]
       tarmac tasks restore ID [--to N] [--files | --conversation | --both]
                            [--force] [--yes] [--json]""",
        about="Show and manage tasks. Each task is a log of everything that was said and done.",
        actions=(
            "list",
            "show",
            "audit",
            "usage",
            "prompt",
            "search",
            "export",
            "pause",
            "unpause",
            "cancel",
            "clear",
            "delete",
            "checkpoints",
            "diff",
            "restore",
        ),
        options=[
            Option("workspace", "only tasks in this folder", "DIR"),
            Option(
                "sort", "newest, oldest, cost, tokens or size", "KEY", ("newest", "oldest", "cost", "tokens", "size")
            ),
            Option("limit", "at most this many [20]", "N"),
            Option("all", "every one"),
            Option("format", "markdown, json or roo [markdown]", "F", ("markdown", "json", "roo")),
            Option(
                "to",
                "for export: the file (-: standard output), or for roo the folder; for diff and restore: the point",
                "FILE",
            ),
            Option("force", "overwrite existing files, or files that somebody else has changed"),
            Option("files", "for restore: restore the files [default]"),
            Option("conversation", "for restore: rewind the conversation instead"),
            Option("both", "for restore: files and conversation"),
            Option("settings", "for export: your modes and MCP servers, as Roo-Code's files"),
            Option("yes", "for delete and restore: do not ask"),
            _JSON,
        ],
        more="""\
  list         the newest first: id, time of the last message, status, cost, first words
  show         everything that happened in a task
  audit        who allowed or denied what, when and why
  usage        tokens, cost and time of each request; how often each tool was called
  prompt       what the model was sent last: system prompt, tools and messages
  search       the messages that contain all of these words; quote a phrase
  export       as a Markdown page, a JSON object, or Roo-Code's own files
  pause        pause a running task before its next step; unpause continues it
  cancel       stop what a running task does now; a new message continues it
  clear        close a task in `tarmac serve`; it can be resumed anywhere
  delete       delete tasks and their subtasks permanently, and end their terminals; asks first, unless --yes
  checkpoints  the points to go back to: messages, and calls that changed something
  diff         the files that the task changed, since its beginning or since the point --to N
  restore      restore files to their state before the first change, or before the point N; only files that the \
task changed are touched, and this can be undone

ID is the id of a task, or a unique beginning of it. The logs are in `tasks` in the
state directory ($TARMAC_STATE_DIR, else ~/.local/state/tarmac); docs/tasks.md.

exit status: 0; 1 no such task, or it is being worked on, or nothing was found; 2 bad
arguments; 125 files can't be read or written""",
    ),
    "import": Verb(
        usage="tarmac import roo DIR [--salvage] [--workspace DIR] [--json]",
        about="Import the tasks and settings of Roo-Code. Its own files are not changed.",
        actions=("roo",),
        options=[
            Option("salvage", "import the part of a damaged file that is before the damage"),
            Option("workspace", "where the project is now [where it was]", "DIR"),
            _JSON,
        ],
        more="""\
DIR is the folder of a task, a folder of such folders, or the one that has them in
`tasks`: in VS Code globalStorage/rooveterinaryinc.roo-cline under the user's folder.
Each mode of custom_modes.yaml becomes modes/SLUG.md in your configuration folder, and
mcp_settings.json is kept there for tasks (tarmac mcp-servers). Your own files are
not overwritten, and a task is imported only once.
`tarmac tasks export ID --format roo` writes the files again.

exit status: 0; 1 a task could not be imported (the others were); 2 bad arguments;
125 Tarmac's own files can't be written""",
    ),
    "config": Verb(
        usage="""\
tarmac config [show [KEY...]] [--changed] [--workspace DIR] [--json]
       tarmac config check | path [--workspace DIR] [--json]""",
        about="Show every setting and where its value comes from. docs/configuration.md lists every setting.",
        actions=("show", "check", "path"),
        options=[
            Option("changed", "only settings that differ from the default"),
            Option("workspace", "the folder the agent works in [here]", "DIR"),
            Option("json", "one JSON object"),
        ],
        more="""\
  show     all settings, or some: a KEY is a name (limits.max_cost) or a table (limits)
  check    read everything that a task here would read, and report problems
  path     print where your own file is: $EDITOR "$(tarmac config path)"

exit status: 0; 1 `check` found something; 2 bad arguments, or an invalid file""",
    ),
    "acp": Verb(
        usage="tarmac acp [OPTIONS]",
        about="Run Tarmac's agent in an editor that speaks the Agent Client Protocol (Zed, JetBrains, Neovim, Emacs "
        "…). The editor starts this command and uses its standard input and output. See docs/acp.md.",
        options=[
            *_MODEL,
            _ON,
            Option("cwd", "with --on: the folder there [the editor's folder]", "DIR"),
            Option("mode", "the mode a session begins in [code]", "MODE"),
            _AUTO,
            Option("client-terminals", "run commands that you allowed in the editor's own terminals"),
        ],
    ),
    "host": Verb(
        usage="""\
tarmac host [OPTIONS] NAME [-- ARGUMENTS...]
       tarmac host [OPTIONS] -- COMMAND [ARGUMENTS...]
       tarmac host --list [--json]""",
        about="Run any agent that speaks the Agent Client Protocol, with Tarmac's session, questions, policy and "
        "terminals. The policy judges its commands and files, as with `tarmac run`. See docs/host.md.",
        options=[
            Option("list", "list the agents that you configured"),
            Option("prompt", "send this, and exit after one turn; without it, talk with the agent", "TEXT"),
            Option("image", "send the agent this picture; may be repeated", "FILE"),
            _AUTO,
            _CWD,
            Option("mode", "one of the agent's own modes", "MODE"),
            Option("auth", "log in first, with this method of the agent", "METHOD"),
            Option("resume", "continue this task, if the agent supports it", "ID"),
            Option("patience", "seconds for the agent to start and to answer [120]", "N"),
            Option("acp-version", "offer the agent this version of the protocol: 1, or the draft 2 [1]", "N"),
            Option("no-mcp", "don't offer the agent Tarmac's terminals as an MCP server"),
            Option("only-our-terminals", "switch off the agent's own shell, if the agent supports it [default]"),
            Option("own-shell", "leave the agent its own shell"),
            _JSON,
        ],
        names="tarmac host --list",
        more="""\
NAME is an agent in your own configuration file (`tarmac config path`):
  [agents.opencode]
  command = ["opencode", "acp"]

exit status: 0 the agent ended its turn; 1 it failed, refused, or is not an ACP agent; 2 bad
arguments; 5 a limit of the agent; 130 stopped""",
    ),
    "terminals": Verb(
        usage="""\
tarmac terminals [list] [--json]
       tarmac terminals attach ID
       tarmac terminals end ID… [--json]""",
        about="List terminals that outlive the program, attach to one, or end them.",
        actions=("list", "attach", "end"),
        options=[Option("json", "print JSON")],
        more="""\
Terminals outlive the program with the setting terminals.outlive, if an agent asks for it,
or from Python. Ctrl-] detaches from a terminal and leaves it running. For ID, a name that
only one terminal has does as well.

exit status: 0; 1 your own terminal was closed; 2 bad arguments; 125 there is no such
terminal, or another program has it""",
    ),
    "fleet": Verb(
        usage="tarmac fleet [ray://[HOST:PORT]] [--json]",
        about="Show the nodes of a Ray cluster, with the terminals of all programs and the load of each node.",
        options=[Option("json", "print JSON")],
        more="""\
Without an address it is the cluster that this machine belongs to. It needs the extra:
pip install 'tarmac[ray]' (docs/cluster.md).

exit status: 0; 2 bad arguments; 125 no cluster answers""",
    ),
    "grants": Verb(
        usage="""\
tarmac grants [list] [--workspace DIR] [--task ID] [--json]
       tarmac grants allow [--prefix] [--workspace DIR | --everywhere] [--json]
                           -- COMMAND
       tarmac grants revoke ID [--json]
       tarmac grants clear [--workspace DIR] [--task ID] [--json]""",
        about="Show and change grants: exact commands, or prefixes, that run without a question.",
        actions=("list", "allow", "revoke", "clear"),
        options=[
            Option("workspace", "only grants of this workspace; for allow: the workspace", "DIR"),
            Option("everywhere", "for allow: in every folder"),
            Option("prefix", "for allow: every command that begins with these words"),
            Option("task", "only grants for this task", "ID"),
            Option("json", "print JSON"),
        ],
        more="""\
No grant covers a critical command. No prefix is the bare name of a program that runs other
programs, such as sudo. Grants are in grants.json in the state directory, which only you can
read. If the file is damaged, or others could write to it, no grant is used; `grants clear`
moves it away.

exit status: 0; 2 bad arguments; 125 the file can't be used""",
    ),
    "check": Verb(
        usage="tarmac check [OPTIONS] [--] COMMAND\n       tarmac check [OPTIONS] --jsonl",
        about="Judge a command without running it: the decision, the risk, and why.",
        command=True,
        options=[
            Option("cwd", "where it would run [here]", "DIR"),
            Option("workspace", "the folder the agent works in [the same]", "DIR"),
            Option("shell", "the shell that would run it [bash]", "SHELL", SHELLS),
            Option("allow", "allow commands that begin with these words; may be repeated", "PREFIX"),
            Option("deny", "deny commands that begin with these words; may be repeated", "PREFIX"),
            Option("json", "one JSON object: the whole verdict, with its plan"),
            Option("jsonl", "judge many commands; see below"),
        ],
        more=f"""\
{_COMMAND}

The longest rule that matches wins, and deny wins a tie. No rule allows a critical
command. Your own rules are in policy.toml in ~/.config/tarmac; docs/policy.md.

exit status: 0 allowed; 3 a person would be asked; 4 denied; 2 bad arguments; 125 Tarmac
could not judge it. With --jsonl: 0.

--jsonl reads a command from each line and prints a verdict for each:
  {{"id": 1, "command": "ls", "cwd": "/a", "workspace": "/a", "shell": "bash"}}
Only `command` is required. The answer to an invalid line is
{{"error": …, "hint": …, "line": N, "decision": "ask"}}.""",
    ),
    "exec": Verb(
        usage="tarmac exec [OPTIONS] [--] COMMAND\n       tarmac exec [OPTIONS] --jsonl",
        about="Run one command in a fresh terminal, show its output live, and exit with its status.",
        command=True,
        options=[
            Option("cwd", "where to run it [here]", "DIR"),
            Option("shell", "the name or path of a shell [bash]", "SHELL", SHELLS),
            Option(
                "provider", "pty: a real shell on a terminal [default]; exec: a process and pipes", "P", ("pty", "exec")
            ),
            Option("timeout", "seconds until it is interrupted, or none [60; at a terminal: none]", "S"),
            Option("answer", "type TEXT when the prompt contains P; /P/ is a pattern", "P=TEXT"),
            Option("json", "print one JSON object at the end, and nothing before"),
            Option("jsonl", "run many commands in one terminal; see below"),
            Option("on", "at another place: ssh://host, docker://container, or a name (docs/fleet.md)", "PLACE"),
        ],
        more=f"""\
{_COMMAND}
  tarmac exec 'cat *.log | sort | uniq -c'
  tarmac exec -- grep -n 'two words' notes.txt

On a terminal, your keys go to the command, including Ctrl-C. Otherwise the command gets
Tarmac's own standard input. In a pipe or a file the output is plain text.

exit status: that of the command, and
  123  the place of --on failed: not found, no key, connection lost (the reason is shown)
  124  it was interrupted because its time was up
  125  Tarmac could not run it, or its exit code is unknown (the reason is shown)
  130  Tarmac and the command were interrupted (Ctrl-C)
  141  the reader of the output has exited; 143: Tarmac was terminated
  2    bad arguments

--jsonl reads a command from each line and prints a result for each:
  {{"command": "make", "timeout": 300, "cwd": "/src", "on_timeout": "interrupt"}}
Only `command` is required. `timeout` is in seconds [60], null for none; `on_timeout` is
interrupt, kill or leave. "answers": {{"Overwrite (y/n)?": "y"}} answers
prompts. Directory and variables stay from line to line. The answer to an invalid line
is {{"error": …, "hint": …, "line": N}}.""",
    ),
    "doctor": Verb(
        usage="""\
tarmac doctor [--shell SHELL]... [--timeout S] [--repair] [--confinement]
                     [--ask-model] [--json]""",
        about="Check whether Tarmac works on this machine, and say what to do if not. It opens real terminals. "
        "It changes nothing without --repair.",
        options=[
            Option("shell", "only this one; may be repeated", "SHELL", SHELLS),
            Option("timeout", "how long a shell may take to start [5]", "S"),
            Option("repair", "repair logs and index after a crash; nothing is deleted"),
            Option("confinement", "attack the confinement of commands, and say what stopped each attack"),
            Option("ask-model", "ask the configured model one short question; it costs a few tokens"),
            Option("json", "one JSON object"),
        ],
        more="""\
  ok       it works
  note     good to know; nothing is wrong
  warning  something works less well than it could
  problem  something does not work

exit status: 0 neither warning nor problem; 1 otherwise; 2 bad arguments""",
    ),
    "mcp": Verb(
        usage="tarmac mcp [OPTIONS]",
        about="Serve terminals to any MCP client (Claude Code, Codex, Gemini CLI, Cursor, VS Code …). Every command is "
        "judged first. A client starts this command and uses its standard input and output. See docs/mcp.md.",
        options=[
            _ON,
            Option("cwd", "the workspace [the client's folder, else this one]; with --on a folder there", "DIR"),
            Option("allow", "run commands that begin with these words without asking; may be repeated", "PREFIX"),
            Option("deny", "never run commands that begin with these words; may be repeated", "PREFIX"),
            Option("auto", "what runs without asking: plan, ask, workspace or all [ask]", "LEVEL", MCP_LEVELS),
            Option("tools", "terminals, files or all [terminals]", "WHICH", ("terminals", "files", "all")),
            Option("http", "serve HTTP on this machine instead, under /mcp; 0 takes a free port", "PORT"),
        ],
        more="""\
With --http the address is printed, with the token that each request must send
(Authorization: Bearer TOKEN). A token from $TARMAC_MCP_TOKEN is not printed.

exit status: 0 the client has disconnected; 2 bad arguments; 128 + the number of a signal""",
    ),
    "mcp-servers": Verb(
        usage="""\
tarmac mcp-servers [list] [--workspace DIR] [--json]
       tarmac mcp-servers check [NAME...] [--workspace DIR] [--json]
       tarmac mcp-servers login | logout NAME [--workspace DIR]""",
        about="Show the MCP servers whose tools a task can use, check them, and sign in to them.",
        actions=("list", "check", "login", "logout"),
        options=[
            Option("workspace", "the workspace [this folder]", "DIR"),
            Option("json", "print one JSON object a server"),
        ],
        more="""\
  list     each server with its file and its command or address; none is started
  check    start each server, or those given, and list its tools or say why it failed
  login    sign in with your browser (OAuth); tasks use the tokens from then on
  logout   remove the tokens

Servers are configured in mcp_servers.toml, in your own folder ($TARMAC_CONFIG_DIR, else
~/.config/tarmac) or in .tarmac of the workspace; .mcp.json, .roo/mcp.json and
.vscode/mcp.json are read too (docs/mcp-servers.md).

exit status: 0; 1 a server failed; 2 bad arguments""",
    ),
    "tour": Verb(
        usage="tarmac tour",
        about="Watch a real terminal at work: a dozen short commands in one shell, with exit code, evidence and time.",
        more="exit status: 0 every result was as expected; 1 not",
    ),
    "completion": Verb(
        usage="tarmac completion bash | zsh | fish",
        about="Print a completion script for your shell.",
        actions=("bash", "zsh", "fish"),
        more="""\
  tarmac completion bash >~/.local/share/bash-completion/completions/tarmac
  tarmac completion zsh >~/.zfunc/_tarmac     (with ~/.zfunc in $fpath)
  tarmac completion fish >~/.config/fish/completions/tarmac.fish""",
    ),
}
FRONT = """\
examples:
  tarmac                              a session in this folder
  tarmac run "make the tests pass"
  tarmac exec -- 'make -j2 && ./run-tests'
  echo '{"command": "cd /tmp && pwd", "timeout": 5}' | tarmac exec --jsonl

Help names pages such as docs/start.md: they are in Tarmac's source. Without it,
`tarmac tour` and `tarmac demo` show how things work."""


_ITEM = re.compile(r" +\S.*?  +(?=\S)")  # "  list     the newest first": up to the second column


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """argparse's own help, at most as wide as a page, with the description wrapped."""

    def __init__(self, prog: str) -> None:
        import shutil

        super().__init__(prog, max_help_position=26, width=min(shutil.get_terminal_size().columns, WIDEST))

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Wrap prose. Indented lines stay as they are, but a long item of a list continues below its own text."""
        import textwrap

        lines: list[str] = []
        for line in text.split("\n"):
            if lines and lines[-1] and line and " " not in (lines[-1][0], line[0]):
                lines[-1] += f" {line}"  # the same paragraph
            else:
                lines.append(line)
        filled: list[str] = []
        for line in lines:
            item = _ITEM.match(line)
            if line[:1] == " " and item is None:
                filled.append(line)
                continue
            hang = " " * item.end() if item else ""
            filled += textwrap.wrap(line, width, subsequent_indent=hang, break_on_hyphens=False) or [""]
        return "\n".join(filled)


class Parser(argparse.ArgumentParser):
    """Errors are BadRequest."""

    def error(self, message: str) -> NoReturn:
        raise BadRequest(message.removeprefix("argument "), hint=f"`{self.prog} --help`")

    def refuse(self, option: str) -> NoReturn:
        """Refuse an option that this parser does not know. A mistyped one gets a hint."""
        wrong = option.partition("=")[0]
        close = suggest(wrong, [each for action in self._actions for each in action.option_strings])
        raise BadRequest(f"there is no option `{wrong}`", hint=close or f"`{self.prog} --help`")


def parser_of(verb: str) -> Parser:
    """The parser of a verb."""
    spec = TABLE[verb]
    parser = Parser(
        prog=f"tarmac {verb}",
        usage=spec.usage,
        description=spec.about or VERBS[verb],
        epilog=spec.more or None,
        formatter_class=_Formatter,
        add_help=False,
    )
    options = parser.add_argument_group("options")
    for each in spec.options:
        what = each.what.replace("%", "%%")
        if each.value:
            options.add_argument(f"--{each.name}", metavar=each.value, help=what, action="append", default=[])
        else:
            options.add_argument(f"--{each.name}", help=what, action="append_const", const="", default=[])
    options.add_argument("-h", "--help", action="store_true", help="show this page")
    parser.add_argument("words", nargs=argparse.REMAINDER if spec.command else "*", help=argparse.SUPPRESS)
    return parser


def parse(verb: str, arguments: Sequence[str]) -> tuple[Given, list[str]]:
    """What was given: option → its values in order (an empty one for a switch), and the words."""
    parser = parser_of(verb)
    if TABLE[verb].command:
        found, unknown = parser.parse_known_args(arguments)
        words = found.words[1:] if found.words[:1] == ["--"] else found.words
    else:
        cut = arguments.index("--") if "--" in arguments else len(arguments)
        found, unknown = parser.parse_known_intermixed_args(arguments[:cut])
        words = [*found.words, *arguments[cut + 1 :]]
    if unknown:
        parser.refuse(unknown[0])
    if found.help:
        sys.stdout.write(parser.format_help())
        raise HelpShown
    values = {each.name: getattr(found, each.name.replace("-", "_")) for each in TABLE[verb].options}
    return {name: given for name, given in values.items() if given}, words


def number(given: Given, name: str, default: int | None) -> int | None:
    """The last value of an option that takes a number above 0."""
    if name not in given:
        return default
    text = given[name][-1]
    if not text.isdecimal() or not int(text):
        raise BadRequest(f"--{name} takes a number above 0, not `{text}`")
    return int(text)


def show_help(about: Sequence[str]) -> int:
    """Print the front page, or that of a verb."""
    if not about or about[0] in ("help", "--help", "-h"):
        sys.stdout.write(_front().format_help())
        return 0
    if about[0] not in TABLE:
        return complain(f"there is no command `{about[0]}`", hint=suggest(about[0], TABLE) or "`tarmac --help`")
    sys.stdout.write(parser_of(about[0]).format_help())
    return 0


def _front() -> Parser:
    parser = Parser(
        prog="tarmac",
        usage="tarmac [COMMAND] [ARGUMENTS]",
        description="Tarmac: real terminals for AI agents, and an agent that works in them.",
        epilog=FRONT,
        formatter_class=_Formatter,
        add_help=False,
    )
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND", prog="tarmac")
    for verb, line in VERBS.items():
        verbs.add_parser(verb, help=line, add_help=False)
    options = parser.add_argument_group("options")
    options.add_argument("-h", "--help", action="store_true", help="show this page; after a command, its own")
    options.add_argument("-V", "--version", action="store_true", help="show the version")
    return parser


def suggest(wrong: str, known: Iterable[str]) -> str:
    """`did you mean …?`, when something known looks like it; else nothing."""
    close = nearest(wrong, list(known))
    return f"did you mean `{close}`?" if close else ""
