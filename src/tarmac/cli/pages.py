"""The pages of the verbs about tasks, written by hand; `help.py` shows them."""

RUN = """\
Give a task to an agent, and watch it work: what it says, what it reads, runs and changes.
What is risky is asked about first, where a person sits at the terminal.

Usage: tarmac run [OPTIONS] [TEXT...]
       tarmac run [OPTIONS] -          (the text comes from standard input)

Without TEXT, at a terminal, it opens a session that waits for your words; so does `tarmac`.

Options:
  --model P/NAME  The model: anthropic/NAME, openai/NAME, openrouter/NAME, ollama/NAME …
                  [`model` in config.toml, or TARMAC_MODEL].
  --base-url URL  The address of the model's provider [its own; `base_url` in config.toml].
  --mode MODE     code, architect, ask, debug, orchestrator, or one of your own [code].
  --cwd DIR       The folder to work in [here].
  --image FILE    A picture for the model; may be given again.
  --auto LEVEL    What runs without asking, in the workspace:
                    read   files are read
                    edit   and changed
                    safe   and commands of medium risk are run
                    all    and the rest, but never what is critical or protected
                  [nothing but what is proven to only read].
  --max-cost X    Stop before more than X US dollars are spent.
  --max-turns N   Stop after N answers of the model.
  --script FILE   Play a script in place of a model (docs/models.md).
  --print         One answer, then end: no session, nobody is asked.
  --json          One JSON object a line: every fact and signal (docs/json.md).
  -h, --help      Show this page.

Questions are answered with single keys (`?` lists them) or with words for the model. What
you type while it works stays in the editor; Enter queues it. @shot.png attaches a picture.
Passwords that a command asks for go from your keyboard to that command alone.
In `tarmac run … | tee log` you are asked on the terminal; without one, with </dev/null or
--json, what would be asked is denied, and the model told.

Ctrl-C stops the current command or answer, and you can say what to do instead. Ctrl-D
leaves. However it ends, `tarmac resume` goes on with it.

Exit status: 0 completed; 1 failed; 2 the arguments or the configuration make no sense;
5 a limit was reached; 130 interrupted.
"""

RESUME = """\
Go on with a task of before: after a limit, an interrupt, a crash, or with new words.

Usage: tarmac resume [OPTIONS] [ID [TEXT...]]

Without ID, at a terminal, you pick one of this folder's tasks; elsewhere it is the newest
that is not completed. TEXT is said to the model first. Without TEXT a recap is shown, and
nothing is sent until you say something. Commands that ran are gone, and the model is told
what became of calls that were under way.

Options: as for `tarmac run`, and
  --go            Go on at once, without waiting for words. The model is that of before, unless you choose another.

Exit status: as for `tarmac run`.
"""

DEMO = """\
Watch Tarmac work on a small Python project with a failing test, in a scratch folder: it
finds the failure, reads, edits, meets a program that asks, runs the tests in real
terminals, asks you once, and finishes. Takes a few seconds, needs no model and no network.

The model is a script: it plays what was written beforehand. All the rest is real: the
terminals, the files, the tests, the judgement of each command, the log.

Usage: tarmac demo [--yes] [--keep] [--fast] [--json]

Options:
  --yes       Approve what is asked by itself; without a terminal this is needed.
  --keep      Leave the project and tell where it is.
  --fast      No pauses between words.
  --json      One JSON object a line (docs/json.md); implies --yes.
  -h, --help  Show this page.

Exit status: 0 when the task was completed and the tests pass; 1 when not.
"""

TASKS = """\
The tasks that agents worked on here: each is a log that keeps all that was said and done.

Usage: tarmac tasks [list] [--workspace DIR] [--sort KEY] [--limit N | --all] [--json]
       tarmac tasks show ID [--json]
       tarmac tasks audit ID [--json]
       tarmac tasks usage ID [--json]
       tarmac tasks search TEXT [--limit N] [--json]
       tarmac tasks export ID [--format F] [--to PATH] [--force]
       tarmac tasks export --settings --to DIR [--force]
       tarmac tasks delete ID... [--yes] [--json]
       tarmac tasks checkpoints ID [--json]
       tarmac tasks diff ID [--to N] [--json]
       tarmac tasks restore ID [--to N] [--files|--conversation|--both] [--force] [--yes] [--json]

  list     The newest first: id, time of the last message, status, cost, first words.
  show     All that happened in one, told as `tarmac run` tells it.
  audit    Who allowed or denied what, when and why; and how questions were answered.
  usage    What each request took: tokens, cost, time; and how often each tool was called.
  search   Where all of these words were said, in any task; quotes make one of several.
  export   As a Markdown page [default], as one JSON object (`json`: every fact, and the
           images), or as Roo-Code's own files (`roo`, needs --to). With --settings: your
           modes and MCP servers as its custom_modes.yaml and mcp_settings.json.
  delete   Remove for good; asks, unless --yes. Not while a process works on it.
  checkpoints  The points to go back to: messages, and calls that changed something.
  diff     What the task changed in files, since its beginning or since the point --to N.
  restore  Bring files back as they were before its first change, or before the point N.
           Only files that the task changed are touched. Those that somebody else changed
           since are left, unless --force. --conversation rewinds the conversation instead,
           --both does both. Asks, unless --yes. It can be undone: it makes a checkpoint.

ID is the id of a task, or as much of it as no other has.

Options:
  --workspace DIR  Only tasks in this folder.
  --sort KEY       newest, oldest, cost, tokens or size [newest].
  --limit N        At most so many [20]; --all shows every one.
  --format F       markdown, json or roo [markdown].
  --to PATH        The file to write, or for roo the folder that gets a folder ID
                   [standard output]. --force writes over what is there.
  --json           One JSON object a line (docs/json.md).
  -h, --help       Show this page.

They are kept under tasks in Tarmac's state directory ($TARMAC_STATE_DIR, else
~/.local/state/tarmac); docs/tasks.md says how. `tarmac doctor` checks them.

Exit status: 0; 1 when there is no such task, when it is being worked on, or when nothing
was found; 2 when the arguments make no sense; 125 when files can't be read or written.
"""

IMPORT = """\
Take in the tasks of Roo-Code, from its own files: the conversation, costs, times, images.
They can then be listed, searched, shown and resumed like others. Its files are only read,
and a copy of them is kept with the task: `tarmac tasks export ID --format roo` gives them
back as they were.

Usage: tarmac import roo DIR [--salvage] [--workspace DIR] [--json]

DIR is the folder of a task (with api_conversation_history.json or ui_messages.json in
it), a folder of such folders, or the one that has them in `tasks`: in VS Code it is
globalStorage/rooveterinaryinc.roo-cline under the user's folder.

Its settings are taken in too: each mode of custom_modes.yaml becomes modes/SLUG.md in
your own folder ($TARMAC_CONFIG_DIR, else ~/.config/tarmac), and mcp_settings.json is kept
there, readable by you alone. Tasks can use its servers then (tarmac mcp-servers).
Nothing of yours is written over.

Options:
  --salvage        Of a file that is damaged, take what is whole before the damage. Without
                   it such a task is left out, and the place of the damage told.
  --workspace DIR  Where their project is now [where it was; here, if they do not say].
  --json           One JSON object a task: its id, or what is wrong with it.
  -h, --help       Show this page.

A task that is here already is not taken in again.

Exit status: 0; 1 when a task could not be taken in (the others were); 2 when the
arguments make no sense; 125 when Tarmac's own files can't be written.
"""

ACP = """\
Let an editor that speaks the Agent Client Protocol (Zed, JetBrains, Neovim, Emacs …)
drive Tarmac's agent. The editor starts this and speaks on its standard input.

Usage: tarmac acp [OPTIONS]

Options:
  --model PROVIDER/NAME   The model [as configured; see `tarmac config show`].
  --base-url URL          The address of its provider [as configured].
  --mode MODE             The mode a session begins in [code].
  --auto LEVEL            What runs without asking: plan, ask, edits, workspace or all [ask].
  --client-terminals      Run commands that you allowed in the editor's own terminals.
  -h, --help              Show this page.

A session is a task: `tarmac tasks` lists it, and `tarmac resume` goes on with it.
How to set up editors: docs/acp.md.
"""

HOST = """\
Run any agent that speaks the Agent Client Protocol, with Tarmac's display, questions,
policy and terminals: its commands and files are judged as those of `tarmac run` are.

Usage: tarmac host [OPTIONS] -- AGENT [ARGUMENTS...]

Options:
  --prompt TEXT   Say this, and end with the agent's turn. Without it, on a terminal,
                  you talk with the agent; Ctrl-D leaves.
  --image FILE    Show the agent this picture with the prompt. May be repeated.
  --auto LEVEL    What runs without asking: plan, ask, edits, workspace or all [ask].
  --cwd DIR       The workspace [here].
  --mode MODE     The mode the agent works in: one of its own.
  --auth METHOD   Log in by this method of the agent first.
  --resume ID     Go on with this task, if the agent can.
  --patience N    Seconds for the agent to start and to answer [120].
  --no-mcp        Don't offer the agent Tarmac's terminals as an MCP server.
  --json          One JSON object a line (docs/json.md).
  -h, --help      Show this page.

Ctrl-C stops the agent's turn; a second one ends it. Whatever the agent started ends
with it. The session is kept as a task: `tarmac tasks show ID`. See docs/host.md.

Exit status: 0 when the agent ended its turn; 1 when it failed, refused, or is no ACP
agent; 2 when the arguments make no sense; 5 at a limit of its own; 130 when stopped.
"""

PAGES = {"acp": ACP, "host": HOST, "run": RUN, "resume": RESUME, "demo": DEMO, "tasks": TASKS, "import": IMPORT}
