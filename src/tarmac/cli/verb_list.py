"""The verbs of `tarmac`, each with its line in the help. It imports nothing, so that `tarmac --version` is quick."""

VERBS = {
    "run": 'Work on a task: tarmac run "make the tests pass".',
    "resume": "Go on with a task of before.",
    "join": "Look on at a task that another process works on, and answer it.",
    "models": "List the models that you can use, with window and price.",
    "demo": "Watch a scripted agent repair a small project; needs no model.",
    "web": "Open the page: tasks, approvals and live terminals in a browser.",
    "serve": "Keep tasks, terminals and the page, without opening a browser.",
    "tasks": "List tasks, show, search, export and delete them.",
    "import": "Take in the tasks of Roo-Code.",
    "config": "Show what is set, and where each value comes from.",
    "acp": "Let an editor drive Tarmac's agent (Agent Client Protocol).",
    "host": "Run another agent (ACP) with Tarmac's terminals and policy.",
    "terminals": "List terminals that outlive the program, attach to one, end them.",
    "grants": "List what was always allowed, and take it back.",
    "check": "Judge a command, or many as JSON lines, without running it.",
    "exec": "Run one command in a fresh terminal, or many as JSON lines.",
    "doctor": "Look whether all of it works on this machine, and what to do.",
    "fleet": "Show the nodes of a cluster, their terminals and their load.",
    "mcp": "Serve terminals to any MCP client.",
    "mcp-servers": "Show the MCP servers that tasks can use, check them, sign in.",
    "tour": "Watch a real terminal at work: a dozen short commands.",
    "completion": "Print the completion of `tarmac` for bash, zsh or fish.",
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
