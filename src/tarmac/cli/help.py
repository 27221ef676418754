"""The pages a person reads, written by hand: `tarmac --help`, `tarmac exec --help` and so on."""

import sys

from tarmac.cli import VERBS, complain
from tarmac.cli.pages import PAGES as TASK_PAGES

FRONT = """\
Tarmac: real terminals for AI agents, and an agent that works in them.
They never hang, never guess an exit code, never lose output; what runs is judged first.

Usage: tarmac COMMAND [ARGUMENTS]

Commands:
{verbs}
Options:
  -h, --help     Show this page; after a command, the page of that command.
  -V, --version  Show the version.

Examples:
  tarmac run "make the tests pass"
  tarmac exec -- 'make -j2 && ./run-tests'
  echo '{{"command": "cd /tmp && pwd", "timeout": 5}}' | tarmac exec --jsonl

Documentation: docs/tour.md in the repository follows one command from end to end;
from Python, start with: python3 -m pydoc tarmac
"""

EXEC = """\
Run one command in a fresh terminal, show its output as it comes, exit as it did.

Usage: tarmac exec [OPTIONS] [--] COMMAND
       tarmac exec [OPTIONS] --jsonl

COMMAND is shell text when it is one argument, and words when there are several:
  tarmac exec 'cat *.log | sort | uniq -c'
  tarmac exec -- grep -n 'two words' notes.txt

Options:
  --cwd DIR        Where to run it [here].
  --shell SHELL    The name or path of a shell [bash].
  --provider P     pty: a real shell on a terminal [default]. exec: a process and
                   pipes; no terminal, faster for bulk output.
  --timeout S      Seconds until it is interrupted [60; none when you sit at the
                   keyboard]. `--timeout none` waits for ever.
  --answer P=TEXT  Type TEXT and Enter when it asks something that contains P; once for
                   each time the option is given. /P/=TEXT: P is a pattern. A question
                   without an answer interrupts it. TEXT is visible to others (`ps`).
  --json           Show nothing until the end, then one JSON object: the result.
  --jsonl          Run many commands in one terminal; see below.
  -h, --help       Show this page.

Output: on a terminal, as the command prints it; in a pipe or a file, plain text
with escapes removed and rewritten lines settled. Standard error is part of it.

Input: on a terminal, your keys go to the command, Ctrl-C too. Otherwise the command
gets Tarmac's own standard input. It is not typed, so no byte of it is special and
lines may be of any length.

Exit status: that of the command, and
  124  it was interrupted because its time was up
  125  Tarmac could not run it, or nobody knows how it ended (the reason is shown)
  130  Tarmac was interrupted (Ctrl-C), and with it the command
  141  nobody read the output any more; 143: Tarmac was terminated
  2    the arguments make no sense

JSON lines: each line of standard input is a command, each line of output its result:
  {"command": "make", "timeout": 300, "cwd": "/src", "on_timeout": "interrupt"}
Only `command` is needed. `timeout` is in seconds [60], null for none; `on_timeout` is
interrupt, kill or leave [interrupt]. "answers": {"Overwrite (y/n)?": "y"} is what to type
when it asks. Directory and variables last from line to line. A line that makes no sense
is answered by {"error": …, "hint": …, "line": N}.
"""

TOUR = """\
Watch a real terminal at work: about a dozen short commands in one shell, each with its
exit code, how it ended, on what evidence, and how long it took. Takes a few seconds,
works in a temporary directory, leaves nothing behind.

Usage: tarmac tour

Exit status: 0 when everything was as it should be, 1 when something was not.
Colours are left out in a pipe, and when NO_COLOR is set.
"""

CHECK = """\
What the policy says of a command, part by part: the decision, the risk, why, and what it
would do. Nothing is run.

Usage: tarmac check [OPTIONS] [--] COMMAND
       tarmac check [OPTIONS] --jsonl

COMMAND is shell text when it is one argument, and words when there are several:
  tarmac check 'git log | head'
  tarmac check -- rm -rf build

Options:
  --cwd DIR        Where it would run [here].
  --workspace DIR  The folder the agent works in [the same].
  --shell SHELL    Whose language it is: bash, sh, zsh, fish, pwsh [bash].
  --allow PREFIX   Allow what begins with these words. May be repeated.
  --deny PREFIX    Deny what begins with these words. May be repeated.
  --json           One JSON object: the whole verdict, with its plan.
  --jsonl          Judge many; see below.
  -h, --help       Show this page.

Rules: the longest that fits wins, deny wins a tie. A program that runs programs (sudo,
env, git, make …) can't be allowed by its first word alone, and nothing allows what is
critical. Your own are read from policy.toml in ~/.config/tarmac ($TARMAC_CONFIG_DIR), and
what config.toml and the workspace's .tarmac/config.toml say counts: tarmac config show.

Colours: on a terminal, unless NO_COLOR is set.

Exit status: 0 allowed, 3 a person would be asked, 4 denied; 2: the arguments make no
sense; 125: Tarmac could not judge it. With --jsonl: 0.

JSON lines: each line of standard input is a command, each line of output its verdict, in
the same order:
  {"id": 1, "command": "git log", "cwd": "/src", "workspace": "/src", "shell": "bash"}
Only `command` is needed. Directories that don't exist are judged by their names. A line
that makes no sense is answered by {"error": …, "hint": …, "line": N, "decision": "ask"}.
"""

GRANTS = """\
What was always allowed: exact lines, or all that begins with certain words; in one task,
in one workspace, or everywhere. Nothing here covers a critical command.

Usage: tarmac grants [list] [--workspace DIR] [--task ID] [--json]
       tarmac grants allow [--prefix] [--workspace DIR | --everywhere] [--json] -- COMMAND
       tarmac grants revoke ID [--json]
       tarmac grants clear [--workspace DIR] [--task ID] [--json]

  list     Show them, oldest first: id, date, where it holds, and the line. A prefix
           ends in `…`.
  allow    Allow exactly this line in this folder, or with --prefix all that begins with
           these words. Nothing critical, and no program that runs programs.
  revoke   Take one back, by its id or the beginning of it.
  clear    Take back all, or those of one workspace or task.

Options:
  --workspace DIR  Only what was allowed for this workspace; of allow: where it holds.
  --everywhere     Of allow: it holds in every folder.
  --prefix         Of allow: all that begins with these words.
  --task ID        Only what was allowed for this task.
  --json           List: one JSON object a line. Revoke and clear: one object.
  -h, --help       Show this page.

They are kept in grants.json in Tarmac's state directory ($TARMAC_STATE_DIR, else
~/.local/state/tarmac), readable by you alone. If that file is damaged, or others could
write to it, none of it counts and everything is asked about; `grants clear` then puts it
aside and starts afresh.

Exit status: 0; 2 when the arguments make no sense; 125 when the file can't be used.
"""

DOCTOR = """\
Look whether all of Tarmac works on this machine: each shell with your own start-up
files (is it up in time, what do they print or ask), what the kernel lets us see, limits,
disk space, the logs of all tasks and their index, and the programs that other parts need.
It opens real terminals, takes a second or two, or up to 5 for each shell that does not
come up, and changes nothing unless told to repair.

Usage: tarmac doctor [--shell SHELL]... [--timeout S] [--repair] [--confinement] [--json]

Options:
  --shell SHELL  Only this one, by its name or path; may be given again. It must be there.
  --timeout S    How long a shell may take to come up [5, as for terminals].
  --repair       Repair what can be: cut off (and keep) what a crash left at the end of a
                 log, make a damaged index anew, finish deletions. Nothing is thrown away.
  --confinement  Attack what keeps commands to reading that run without a question, with
                 canaries of our own; say what stopped each attack. No other check is made.
  --json         One JSON object: version, ok, and findings with topic, name, level,
                 what, advice and facts.
  -h, --help     Show this page.

Each line has a level, and where something can be done, an arrow that says what:
  ok       it works
  note     worth knowing; nothing is amiss (a shell that is not installed)
  warning  something works less well than it could
  problem  something does not work

Exit status: 0 when there is neither warning nor problem; 1 when there is;
2 when the arguments make no sense.
Colours are left out in a pipe, and when NO_COLOR is set.
"""

CONFIG = """\
What is set, and where each value comes from: by default, from config.toml in your own
folder, a TARMAC_... variable, or .tarmac/config.toml in the workspace, which may
only tighten. docs/configuration.md lists every setting.

Usage: tarmac config [show [KEY...]] [--changed] [--workspace DIR] [--json]
       tarmac config check [--workspace DIR] [--json]
       tarmac config path [--workspace DIR] [--json]

  show     Print all settings, or some: a KEY is a name (limits.max_cost) or the name of
           a table (limits). Then come notes: what the workspace was refused. Providers'
           keys are masked.
  check    Read all that a task here would read (settings, rules, modes, instructions)
           and say what is wrong with it.
  path     Print where your own file is, or would be: $EDITOR "$(tarmac config path)"

Options:
  --changed        Only what is not as by default.
  --workspace DIR  The folder the agent works in [here].
  --json           One JSON object. Of `path`, the workspace's files too.
  -h, --help       Show this page.

Exit status: 0; 1 when `check` found something; 2 when the arguments make no sense, or
something in a file does not (the message says where, and the nearest right name).
"""

MCP = """\
Serve terminals to any MCP client (Claude Code, Codex, Gemini CLI, Cursor, VS Code …): run
commands, keep terminals open, read, type, wait, interrupt. Every command is judged first;
what needs a person's yes is asked through the client, or denied where it can't ask.

Usage: tarmac mcp [OPTIONS]

A client starts it, and speaks with it over standard input and output. docs/mcp.md shows
what to write into each client's configuration.

Options:
  --cwd DIR        The workspace [what the client says, else here].
  --allow PREFIX   Run what begins with these words without asking. May be repeated.
  --deny PREFIX    Never run what begins with these words. May be repeated.
  --auto LEVEL     plan, ask, workspace or all, as in the configuration [ask]: plan only
                   reads, workspace runs known commands of medium risk without asking,
                   all what else is asked about.
                   Neither covers what is critical.
  --tools WHICH    terminals, files or all [terminals]: files reads, searches and edits.
  --http PORT      Serve HTTP on this machine instead, under /mcp; 0 takes a free port.
                   Prints the address, and the token that each request must bring
                   (Authorization: Bearer TOKEN). $TARMAC_MCP_TOKEN sets it, and then it
                   is not printed.
  -h, --help       Show this page.

Terminals end with the server, and with the client that opened them.
`tarmac grants allow` allows a command for good.

Exit status: 0 when the client has gone; 2 when the arguments make no sense; 128 + the
number of the signal that ended it.
"""

MCP_SERVERS = """\
Show the MCP servers whose tools a task can use, check them, and sign in to them.

Usage: tarmac mcp-servers [list] [--workspace DIR] [--json]
       tarmac mcp-servers check [NAME...] [--workspace DIR] [--json]
       tarmac mcp-servers login NAME [--workspace DIR]
       tarmac mcp-servers logout NAME [--workspace DIR]

  list     Each server, where it is named, and its command or address. None is started.
  check    Start each, or those named, and say what tools it has or why it failed.
  login    Sign in with your browser (OAuth). Tasks use the tokens from then on.
  logout   Remove the tokens.

They are named in mcp_servers.toml, in your own folder ($TARMAC_CONFIG_DIR, else
~/.config/tarmac) or in .tarmac of the workspace; .mcp.json, .roo/mcp.json and
.vscode/mcp.json are read too (docs/mcp-servers.md).

Options:
  --workspace DIR  The folder whose servers are meant [this one].
  --json           One JSON object a server.
  -h, --help       Show this page.

Exit status: 0; 1 when a server failed; 2 when the arguments make no sense.
"""

PAGES = {
    "mcp": MCP,
    "mcp-servers": MCP_SERVERS,
    **TASK_PAGES,
    "doctor": DOCTOR,
    "check": CHECK,
    "config": CONFIG,
    "exec": EXEC,
    "grants": GRANTS,
    "tour": TOUR,
}


def show(about: list[str]) -> int:
    """Print the front page, or that of the command asked about."""
    if not about or about[0] == "help":
        verbs = "".join(f"  {verb:<13}{line}\n" for verb, line in VERBS.items())
        sys.stdout.write(FRONT.format(verbs=verbs))
        return 0
    if about[0] not in PAGES:
        return complain(f"there is no command `{about[0]}`", hint=suggest(about[0], PAGES) or "`tarmac --help`")
    sys.stdout.write(PAGES[about[0]])
    return 0


def suggest(wrong: str, known: "list[str] | dict[str, str]") -> str:
    """`did you mean …?`, when something known looks like it; else nothing."""
    from tarmac.nearest import nearest

    close = nearest(wrong, known)
    return f"did you mean `{close}`?" if close else ""
