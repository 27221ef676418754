"""The command line of every verb, described once. argparse parses it and writes the help; completion.py reads it too.

parse("run", arguments) → {option: its values}, words        HelpShown after --help, BadRequest with a hint
"""

import argparse
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
_AUTO = Option(
    "auto", "without asking: plan, ask, edits, workspace or all; never what is critical [ask]", "LEVEL", LEVELS[:5]
)
_CWD = Option("cwd", "the folder to work in [here]", "DIR")
_ON = Option("on", "work at another place: ssh://host, docker://container, or a name (docs/fleet.md)", "PLACE")
_RUN = [
    *_MODEL,
    _ON,
    Option("mode", "code, architect, ask, debug, orchestrator, or one of your own [code]", "MODE"),
    _CWD,
    Option("image", "a picture for the model; may be repeated", "FILE"),
    _AUTO,
    Option("max-cost", "stop before more than so many US dollars are spent", "X"),
    Option("max-turns", "stop after so many answers of the model", "N"),
    Option("script", "play a script in place of a model (docs/models.md)", "FILE"),
    Option("print", "one answer, then end: no session, nobody is asked"),
    _JSON,
]
_RUN_STATUS = """\
exit status: 0 completed; 1 failed; 2 the arguments or the configuration make no sense;
5 a limit was reached; 123 the place of --on failed; 130 interrupted"""
_COMMAND = "COMMAND is shell text when it is one argument, and words when there are several."

_WEB = Verb(
    usage="tarmac web [OPTIONS]",
    about="Serve Tarmac's page on this machine: tasks and their questions, the terminals that the agent uses, live, "
    "settings and usage. `tarmac web` opens it in a browser, `tarmac serve` does not. It runs until Ctrl-C.",
    options=[
        Option("port", "the port [that of the last time, if it is free]; 0 takes a free one", "N"),
        Option("no-browser", "only print the address"),
        Option("lan", "let devices of this network in, too, each after your yes; not encrypted"),
        Option("new", "another server, also when one is running"),
        *_MODEL,
        Option("mode", "the mode of new tasks [code]", "MODE"),
        _CWD,
        _AUTO,
        Option("max-cost", "stop a task before more than so many US dollars are spent", "X"),
        Option("script", "play a script in place of a model (docs/models.md)", "FILE"),
    ],
    more="""\
The address is printed on a line of its own. It lets one browser in, once, within ten
minutes; Enter prints another. Processes that an agent runs are not let in. A second
`tarmac web` opens another window of the server that runs. Tasks stay when it ends: the
next one opens those that were not done, and asks whether to go on.

exit status: 0; 2 bad arguments; 128 + the number of a signal""",
)

TABLE: Final[dict[str, Verb]] = {
    "run": Verb(
        usage='tarmac run [OPTIONS] ["TEXT"]\n       tarmac run [OPTIONS] -    (the text comes from standard input)',
        about="Give a task to an agent and watch it work. Without TEXT, at a terminal, a session waits for your words.",
        options=[
            *_RUN,
            Option("server", "run it in the `tarmac serve` that runs, and join it: it goes on when you leave"),
            Option("detach", "as --server, but print its id and end"),
        ],
        more=f"""\
Questions are answered with single keys (? lists them) or with words for the model. What
you type while it works stays in the editor; Enter queues it. @shot.png attaches a picture.
A password that a command asks for goes from your keyboard to that command alone.
In `tarmac run … | tee log` you are asked on the terminal. Without a terminal, or with
--json or --print, what would be asked is denied, and the model is told.

Ctrl-C stops the current command or answer, and you can say what to do instead. Ctrl-D
leaves. However it ends, `tarmac resume` goes on with it.

{_RUN_STATUS}""",
    ),
    "resume": Verb(
        usage='tarmac resume [OPTIONS] [ID ["TEXT"]]',
        about="Go on with a task of before: after a limit, an interrupt, a crash, or with new words.",
        options=[*_RUN, Option("go", "go on at once, without waiting for words")],
        more=f"""\
Without ID, at a terminal, you pick one of this folder's tasks; elsewhere it is the newest
that is not completed. TEXT is said to the model first. Without TEXT a recap is shown, and
nothing is sent until you say something. Commands that ran are gone, and the model is told
what became of calls that were under way.

{_RUN_STATUS}""",
    ),
    "join": Verb(
        usage='tarmac join [OPTIONS] [ID ["TEXT"]]',
        about="Join a task that another process of yours has open: a session, an editor, the page or `tarmac serve`.",
        options=[_JSON],
        more="""\
You see what it does as it happens, can speak to it and answer its questions. The first
answer counts; the others are told. Without ID it is the task that is at work, or you pick
one. TEXT is said to it first. Ctrl-C stops what the task does now; Ctrl-D leaves it, and
it goes on. Processes that an agent runs can't join.

exit status: as `tarmac run`""",
    ),
    "models": Verb(
        usage="tarmac models [--provider P [--base-url URL]] [--json]",
        about="List the models that you can use, with context window, and price for a million tokens.",
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
            Option("yes", "approve what is asked; needed without a terminal"),
            Option("keep", "leave the project and say where it is"),
            Option("fast", "no pauses between words"),
            _JSON,
        ],
        more="exit status: 0 the task was completed and the tests pass; 1 not; 130 interrupted",
    ),
    "web": _WEB,
    "serve": replace(_WEB, usage="tarmac serve [OPTIONS]"),
    "tasks": Verb(
        usage="""\
tarmac tasks [list] [--workspace DIR] [--sort KEY] [--limit N | --all] [--json]
       tarmac tasks show | audit | usage | prompt ID [--json]
       tarmac tasks search TEXT [--limit N] [--json]
       tarmac tasks export ID [--format F] [--to PATH] [--force]
       tarmac tasks export --settings --to DIR [--force]
       tarmac tasks pause | unpause | cancel | clear ID... [--json]
       tarmac tasks delete ID... [--yes] [--json]
       tarmac tasks checkpoints ID [--json]
       tarmac tasks diff ID [--to N] [--json]
       tarmac tasks restore ID [--to N] [--files|--conversation|--both] [--force] [--yes] [--json]""",
        about="The tasks that agents worked on here. Each is a log of all that was said and done.",
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
            Option("limit", "at most so many [20]", "N"),
            Option("all", "every one"),
            Option("format", "markdown, json or roo [markdown]", "F", ("markdown", "json", "roo")),
            Option("to", "of export: the file to write, for roo the folder; of diff and restore: the point", "FILE"),
            Option("force", "write over what is there, or what somebody else changed since"),
            Option("files", "of restore: bring files back [default]"),
            Option("conversation", "of restore: rewind the conversation instead"),
            Option("both", "of restore: files and conversation"),
            Option("settings", "of export: your modes and MCP servers, as Roo-Code's files"),
            Option("yes", "of delete and restore: do not ask"),
            _JSON,
        ],
        more="""\
  list     the newest first: id, time of the last message, status, cost, first words
  show     all that happened in one
  audit    who allowed or denied what, when and why
  usage    tokens, cost and time of each request; how often each tool was called
  prompt   what the model was sent last: system prompt, tools and messages
  search   where all of these words were said; quotes make one of several
  export   as a Markdown page, a JSON object, or Roo-Code's own files
  pause    let a running task stand still before its next step; unpause lets it go on
  cancel   stop what a running task does now; it can go on with new words
  clear    close a task of `tarmac serve` there; it can be resumed anywhere
  delete   remove for good; asks, unless --yes
  checkpoints  the points to go back to: messages, and calls that changed something
  diff     what the task changed in files, since its beginning or since the point --to N
  restore  bring files back as they were before its first change, or before the point N;
           only files that the task changed are touched, and it can be undone

ID is the id of a task, or as much of it as no other has. The logs are in `tasks` in the
state directory ($TARMAC_STATE_DIR, else ~/.local/state/tarmac); docs/tasks.md.

exit status: 0; 1 no such task, or it is being worked on, or nothing was found; 2 bad
arguments; 125 files can't be read or written""",
    ),
    "import": Verb(
        usage="tarmac import roo DIR [--salvage] [--workspace DIR] [--json]",
        about="Take in the tasks and settings of Roo-Code from its own files, which are only read.",
        actions=("roo",),
        options=[
            Option("salvage", "of a damaged file, take what is whole before the damage"),
            Option("workspace", "where the project is now [where it was]", "DIR"),
            _JSON,
        ],
        more="""\
DIR is the folder of a task, a folder of such folders, or the one that has them in
`tasks`: in VS Code globalStorage/rooveterinaryinc.roo-cline under the user's folder.
Each mode of custom_modes.yaml becomes modes/SLUG.md in your configuration folder, and
mcp_settings.json is kept there for tasks (tarmac mcp-servers). Nothing of yours is
written over, and a task that is here already is not taken in again.
`tarmac tasks export ID --format roo` gives the files back.

exit status: 0; 1 a task could not be taken in (the others were); 2 bad arguments;
125 Tarmac's own files can't be written""",
    ),
    "config": Verb(
        usage="""\
tarmac config [show [KEY...]] [--changed] [--workspace DIR] [--json]
       tarmac config check | path [--workspace DIR] [--json]""",
        about="Show what is set, and where each value comes from. docs/configuration.md lists every setting.",
        actions=("show", "check", "path"),
        options=[
            Option("changed", "only what is not as by default"),
            Option("workspace", "the folder the agent works in [here]", "DIR"),
            Option("json", "one JSON object"),
        ],
        more="""\
  show     all settings, or some: a KEY is a name (limits.max_cost) or a table (limits)
  check    read all that a task here would read, and say what is wrong with it
  path     print where your own file is: $EDITOR "$(tarmac config path)"

exit status: 0; 1 `check` found something; 2 bad arguments, or a file makes no sense""",
    ),
    "acp": Verb(
        usage="tarmac acp [OPTIONS]",
        about="Let an editor that speaks the Agent Client Protocol (Zed, JetBrains, Neovim, Emacs …) drive Tarmac's "
        "agent. The editor starts this and speaks on its standard input. See docs/acp.md.",
        options=[
            *_MODEL,
            _ON,
            Option("cwd", "with --on: the folder there [that which the editor names]", "DIR"),
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
        "terminals. Its commands and files are judged as those of `tarmac run` are. See docs/host.md.",
        options=[
            Option("list", "list the agents that you configured"),
            Option("prompt", "say this, and end with the agent's turn; without it you talk with the agent", "TEXT"),
            Option("image", "show the agent this picture; may be repeated", "FILE"),
            _AUTO,
            _CWD,
            Option("mode", "one of the agent's own modes", "MODE"),
            Option("auth", "log in by this method of the agent first", "METHOD"),
            Option("resume", "go on with this task, if the agent can", "ID"),
            Option("patience", "seconds for the agent to start and to answer [120]", "N"),
            Option("acp-version", "offer the agent this version of the protocol: 1, or the draft 2 [1]", "N"),
            Option("no-mcp", "don't offer the agent Tarmac's terminals as an MCP server"),
            Option("only-our-terminals", "switch off the agent's own shell, where it can be; this is the default"),
            Option("own-shell", "leave the agent its own shell"),
            _JSON,
        ],
        names="tarmac host --list",
        more="""\
NAME is an agent in your own configuration file (`tarmac config path`):
  [agents.opencode]
  command = ["opencode", "acp"]

exit status: 0 the agent ended its turn; 1 it failed, refused, or is no ACP agent; 2 bad
arguments; 5 a limit of the agent's own; 130 stopped""",
    ),
    "terminals": Verb(
        usage="""\
tarmac terminals [list] [--json]
       tarmac terminals attach ID
       tarmac terminals end ID…""",
        about="Terminals that outlive the program: list them, go on with one, end them.",
        actions=("list", "attach", "end"),
        options=[Option("json", "print JSON")],
        more="""\
A terminal outlives its program only if it was opened so: by the setting terminals.outlive,
by an agent that asked for it, or from Python. Ctrl-] leaves an attached one running.

exit status: 0; 1 your own terminal went away; 2 bad arguments; 125 there is no such
terminal, or another program has it""",
    ),
    "fleet": Verb(
        usage="tarmac fleet [ray://[HOST:PORT]] [--json]",
        about="The nodes of a Ray cluster: how many terminals each has, of all programs, and how busy it is.",
        options=[Option("json", "print JSON")],
        more="""\
Without an address it is the cluster that this machine belongs to. It needs the extra:
pip install 'tarmac[ray]' (docs/cluster.md).

exit status: 0; 2 bad arguments; 125 no cluster answers""",
    ),
    "grants": Verb(
        usage="""\
tarmac grants [list] [--workspace DIR] [--task ID] [--json]
       tarmac grants allow [--prefix] [--workspace DIR | --everywhere] [--json] -- COMMAND
       tarmac grants revoke ID [--json]
       tarmac grants clear [--workspace DIR] [--task ID] [--json]""",
        about="What was always allowed: exact lines, or all that begins with certain words.",
        actions=("list", "allow", "revoke", "clear"),
        options=[
            Option("workspace", "only of this workspace; of allow: where it holds", "DIR"),
            Option("everywhere", "of allow: it holds in every folder"),
            Option("prefix", "of allow: all that begins with these words"),
            Option("task", "only what was allowed for this task", "ID"),
            Option("json", "print JSON"),
        ],
        more="""\
Nothing here covers a critical command, or a program that runs programs. Grants are in
grants.json in the state directory, readable by you alone. If others could write to that
file, or it is damaged, none of it counts; `grants clear` puts it aside.

exit status: 0; 2 bad arguments; 125 the file can't be used""",
    ),
    "check": Verb(
        usage="tarmac check [OPTIONS] [--] COMMAND\n       tarmac check [OPTIONS] --jsonl",
        about="Judge a command without running it: the decision, the risk, and why.",
        command=True,
        options=[
            Option("cwd", "where it would run [here]", "DIR"),
            Option("workspace", "the folder the agent works in [the same]", "DIR"),
            Option("shell", "whose language it is [bash]", "SHELL", SHELLS),
            Option("allow", "allow what begins with these words; may be repeated", "PREFIX"),
            Option("deny", "deny what begins with these words; may be repeated", "PREFIX"),
            Option("json", "one JSON object: the whole verdict, with its plan"),
            Option("jsonl", "judge many; see below"),
        ],
        more=f"""\
{_COMMAND}

Of several rules the longest that fits wins, and deny wins a tie. Nothing allows what is
critical. Your own rules are in policy.toml in ~/.config/tarmac; docs/policy.md.

exit status: 0 allowed; 3 a person would be asked; 4 denied; 2 bad arguments; 125 Tarmac
could not judge it. With --jsonl: 0.

--jsonl reads a command from each line and prints a verdict for each:
  {{"id": 1, "command": "git log", "cwd": "/src", "workspace": "/src", "shell": "bash"}}
Only `command` is needed. A line that makes no sense is answered by
{{"error": …, "hint": …, "line": N, "decision": "ask"}}.""",
    ),
    "exec": Verb(
        usage="tarmac exec [OPTIONS] [--] COMMAND\n       tarmac exec [OPTIONS] --jsonl",
        about="Run one command in a fresh terminal, show its output as it comes, exit as it did.",
        command=True,
        options=[
            Option("cwd", "where to run it [here]", "DIR"),
            Option("shell", "the name or path of a shell [bash]", "SHELL", SHELLS),
            Option(
                "provider", "pty: a real shell on a terminal [default]; exec: a process and pipes", "P", ("pty", "exec")
            ),
            Option("timeout", "seconds until it is interrupted, or none [60; none when you sit there]", "S"),
            Option("answer", "type TEXT when it asks something that contains P; /P/ is a pattern", "P=TEXT"),
            Option("json", "show nothing until the end, then one JSON object"),
            Option("jsonl", "run many commands in one terminal; see below"),
            Option("on", "at another place: ssh://host, docker://container, or a name (docs/fleet.md)", "PLACE"),
        ],
        more=f"""\
{_COMMAND}
  tarmac exec 'cat *.log | sort | uniq -c'
  tarmac exec -- grep -n 'two words' notes.txt

On a terminal, your keys go to the command, Ctrl-C too. Otherwise the command gets
Tarmac's own standard input. In a pipe or a file the output is plain text.

exit status: that of the command, and
  123  the place of --on failed: not found, no key, connection lost (the reason is shown)
  124  it was interrupted because its time was up
  125  Tarmac could not run it, or nobody knows how it ended (the reason is shown)
  130  Tarmac was interrupted (Ctrl-C), and with it the command
  141  nobody read the output any more; 143: Tarmac was terminated
  2    bad arguments

--jsonl reads a command from each line and prints a result for each:
  {{"command": "make", "timeout": 300, "cwd": "/src", "on_timeout": "interrupt"}}
Only `command` is needed. `timeout` is in seconds [60], null for none; `on_timeout` is
interrupt, kill or leave. "answers": {{"Overwrite (y/n)?": "y"}} is what to type when it
asks. Directory and variables last from line to line. A line that makes no sense is
answered by {{"error": …, "hint": …, "line": N}}.""",
    ),
    "doctor": Verb(
        usage="tarmac doctor [--shell SHELL]... [--timeout S] [--repair] [--confinement] [--ask-model] [--json]",
        about="Look whether all of Tarmac works on this machine, and say what to do. It opens real terminals and "
        "changes nothing unless told to repair.",
        options=[
            Option("shell", "only this one; may be repeated", "SHELL", SHELLS),
            Option("timeout", "how long a shell may take to come up [5]", "S"),
            Option("repair", "repair logs and index after a crash; nothing is thrown away"),
            Option("confinement", "attack what confines commands, and say what stopped each attack"),
            Option("ask-model", "ask the configured model one short question; it costs a few tokens"),
            Option("json", "one JSON object"),
        ],
        more="""\
  ok       it works
  note     worth knowing; nothing is amiss
  warning  something works less well than it could
  problem  something does not work

exit status: 0 neither warning nor problem; 1 otherwise; 2 bad arguments""",
    ),
    "mcp": Verb(
        usage="tarmac mcp [OPTIONS]",
        about="Serve terminals to any MCP client (Claude Code, Codex, Gemini CLI, Cursor, VS Code …). Every command is "
        "judged first. A client starts this and speaks on its standard input. See docs/mcp.md.",
        options=[
            _ON,
            Option("cwd", "the workspace [what the client says, else here]; with --on a folder there", "DIR"),
            Option("allow", "run what begins with these words without asking; may be repeated", "PREFIX"),
            Option("deny", "never run what begins with these words; may be repeated", "PREFIX"),
            Option("auto", "plan, ask, workspace or all [ask]; none covers what is critical", "LEVEL", MCP_LEVELS),
            Option("tools", "terminals, files or all [terminals]", "WHICH", ("terminals", "files", "all")),
            Option("http", "serve HTTP on this machine instead, under /mcp; 0 takes a free port", "PORT"),
        ],
        more="""\
With --http the address is printed, and the token that each request must bring
(Authorization: Bearer TOKEN). $TARMAC_MCP_TOKEN sets it, and then it is not printed.

exit status: 0 the client has gone; 2 bad arguments; 128 + the number of a signal""",
    ),
    "mcp-servers": Verb(
        usage="""\
tarmac mcp-servers [list] [--workspace DIR] [--json]
       tarmac mcp-servers check [NAME...] [--workspace DIR] [--json]
       tarmac mcp-servers login | logout NAME [--workspace DIR]""",
        about="Show the MCP servers whose tools a task can use, check them, and sign in to them.",
        actions=("list", "check", "login", "logout"),
        options=[
            Option("workspace", "the folder whose servers are meant [here]", "DIR"),
            Option("json", "print one JSON object a server"),
        ],
        more="""\
  list     each server, where it is named, and its command or address; none is started
  check    start each, or those named, and say what tools it has or why it failed
  login    sign in with your browser (OAuth); tasks use the tokens from then on
  logout   remove the tokens

They are named in mcp_servers.toml, in your own folder ($TARMAC_CONFIG_DIR, else
~/.config/tarmac) or in .tarmac of the workspace; .mcp.json, .roo/mcp.json and
.vscode/mcp.json are read too (docs/mcp-servers.md).

exit status: 0; 1 a server failed; 2 bad arguments""",
    ),
    "tour": Verb(
        usage="tarmac tour",
        about="Watch a real terminal at work: a dozen short commands in one shell, with exit code, evidence and time.",
        more="exit status: 0 everything was as it should be; 1 something was not",
    ),
    "completion": Verb(
        usage="tarmac completion bash | zsh | fish",
        about="Print the shell's completion of `tarmac`, made from these pages.",
        actions=("bash", "zsh", "fish"),
        more="""\
  bash   tarmac completion bash > ~/.local/share/bash-completion/completions/tarmac
  zsh    tarmac completion zsh > ~/.zfunc/_tarmac     (with ~/.zfunc in $fpath)
  fish   tarmac completion fish > ~/.config/fish/completions/tarmac.fish""",
    ),
}
FRONT = """\
examples:
  tarmac                              a session in this folder
  tarmac run "make the tests pass"
  tarmac exec -- 'make -j2 && ./run-tests'
  echo '{"command": "cd /tmp && pwd", "timeout": 5}' | tarmac exec --jsonl

Start with docs/start.md; docs/tour.md follows one command from end to end."""


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """argparse's own help, at most as wide as a page, with the description wrapped."""

    def __init__(self, prog: str) -> None:
        import shutil

        super().__init__(prog, max_help_position=26, width=min(shutil.get_terminal_size().columns, WIDEST))

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text:
            return super()._fill_text(text, width, indent)
        return argparse.HelpFormatter._fill_text(self, text, width, indent)


class Parser(argparse.ArgumentParser):
    """Errors are BadRequest, with a hint for whoever mistyped an option."""

    def error(self, message: str) -> NoReturn:
        hint = ""
        if message.startswith("unrecognized arguments: "):
            wrong = message.removeprefix("unrecognized arguments: ").split()[0].partition("=")[0]
            message = f"there is no option {wrong}"
            hint = suggest(wrong, [each for action in self._actions for each in action.option_strings])
        raise BadRequest(message.removeprefix("argument "), hint=hint or f"`{self.prog} --help`")


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
        found = parser.parse_args(arguments)
        words = found.words[1:] if found.words[:1] == ["--"] else found.words
    else:
        cut = arguments.index("--") if "--" in arguments else len(arguments)
        found = parser.parse_intermixed_args(arguments[:cut])
        words = [*found.words, *arguments[cut + 1 :]]
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
    if not about or about[0] == "help":
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
