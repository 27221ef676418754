"""The verbs of `tarmac`, each with its line in the help. It imports nothing, so that `tarmac --version` is quick."""

VERBS = {
    "run": 'Work on a task: tarmac run "make the tests pass".',
    "resume": "Continue an earlier task.",
    "join": "Join a task that another process runs: watch it, and answer its questions.",
    "models": "List the models that you can use, with window and price.",
    "demo": "Watch a scripted agent repair a small project; needs no model.",
    "web": "Open the page: tasks, approvals and live terminals in a browser.",
    "serve": "Keep tasks, terminals and the page, without opening a browser.",
    "tasks": "List tasks, show, search, export and delete them.",
    "import": "Import the tasks of Roo-Code.",
    "config": "Show every setting and where its value comes from.",
    "acp": "Run Tarmac's agent in an editor (Agent Client Protocol).",
    "host": "Run another agent (ACP) with Tarmac's terminals and policy.",
    "terminals": "List terminals that outlive the program, attach to one, end them.",
    "grants": "List what you always allowed, and revoke it.",
    "check": "Judge a command, or many as JSON lines, without running it.",
    "exec": "Run one command in a fresh terminal, or many as JSON lines.",
    "doctor": "Check whether Tarmac works on this machine, and say what to do.",
    "fleet": "Show the nodes of a cluster, their terminals and their load.",
    "mcp": "Serve terminals to any MCP client.",
    "mcp-servers": "Show the MCP servers that tasks can use, check them, sign in.",
    "tour": "Watch a real terminal at work: a dozen short commands.",
    "completion": "Print a completion script for bash, zsh or fish.",
    "help": "Show this page, or that of a command: tarmac help exec.",
}
ELSEWHERE = {
    "import": "import_roo",
    "mcp-servers": "mcp_servers",
    "resume": "run:resume",
    "serve": "web:serve",
}  # other modules


class HelpShown(Exception):
    """The person asked for the help of a verb, and has it."""
