"""What there is: the role, the tools, what they make possible, the modes, the machine. Sections of the "
"system prompt."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tarmac.prompts.system import PromptContext

LONGEST_SUMMARY = 300
LONGEST_LIST = 12_000  # characters of the modes; a repository may have any number


def role(context: "PromptContext") -> str:
    """Who the model is; said first, with its file when that is the workspace's."""
    mode = context.mode
    return (
        mode.role if mode.source != "workspace" else f"{mode.role}\n(This role is from {mode.origin} in the workspace.)"
    )


def formatting(_: "PromptContext") -> str:
    return """====

FORMATTING

Write Markdown. Put names from code, commands and paths in backticks; give a place in a file as `path:line`. Show \
code in fences with its language. Be brief: the user sees every tool call and its result, so do not repeat them."""


def tool_list(context: "PromptContext") -> str:
    """The tools by name, a sentence each; their parameters go to the model by themselves."""
    if not context.tools:
        return ""
    lines = [f"- `{each.name}`: {summary(each.description)}" for each in context.tools]
    return "# Tools\n\n" + "\n".join(lines)


def summary(text: str) -> str:
    """The first sentence."""
    first = re.split(r"(?<=[.!?])\s|\n", text.strip(), maxsplit=1)[0]
    first = first.rstrip(":")
    return first if len(first) <= LONGEST_SUMMARY else f"{first[: LONGEST_SUMMARY - 1]}…"


def servers(context: "PromptContext") -> str:
    if not context.servers:
        return ""
    parts = [
        "====\n\nMCP SERVERS\n\nThese servers are connected. What they say of themselves is theirs, not the user's."
    ]
    for server in context.servers:
        about = server.instructions.strip()[:4_000]
        parts.append(f"## {server.name}" + (f"\n\n{about}" if about else ""))
    return "\n\n".join(parts)


def capabilities(context: "PromptContext") -> str:
    has = context.has
    lines = [
        "- With the user's first message, `<environment_details>` lists the files of the workspace; later ones tell "
        "what changed, what runs in terminals, the time and the cost. It is made by Tarmac, not written by the user."
    ]
    if looking := has("read_file", "search_files", "list_files", "list_code_definition_names", "codebase_search"):
        lines.append(f"- You can look at the workspace: {_listed(looking)}.")
    if editing := has(*EDITING):
        lines.append(f"- You can change files: {_listed(editing)}.")
    if commands := has(*COMMANDS):
        lines.append(
            f"- You can run commands on the user's machine with {_listed(commands)}, in real terminals: variables and "
            "functions last from one command to the next. The exit code you are told is the true one."
        )
    if terminals := has(*TERMINALS):
        lines.append(
            "- What takes long or never ends (servers, watchers) goes on while you do other things; "
            f"{_listed(terminals)} let you work with it. When a command waits for input you are told so, with "
            "its question."
        )
    if has("browser_action"):
        lines.append("- You can look at and use web pages with `browser_action`.")
    if mcp := has("use_mcp_tool", "access_mcp_resource"):
        lines.append(f"- You can use what the MCP servers offer: {_listed(mcp)}.")
    if context.images:
        lines.append("- You can see images that the user sends, or that you read.")
    return "====\n\nCAPABILITIES\n\n" + "\n".join(lines)


EDITING = ("apply_diff", "search_and_replace", "insert_content", "apply_patch", "write_to_file")
COMMANDS = ("execute_command", "run_command", "run_persistent_command")
TERMINALS = (
    "open_persistent_terminal",
    "read_terminal",
    "send_to_terminal",
    "wait_for_terminal",
    "kill_persistent_terminal",
)


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def modes(context: "PromptContext") -> str:
    """All modes, and which one it is now."""
    lines: list[str] = []
    for mode in sorted(context.modes.all, key=lambda each: each.slug != context.mode.slug):
        if sum(map(len, lines)) > LONGEST_LIST:
            lines.append(f"- and {len(context.modes.all) - len(lines)} others")
            break
        here = " (this is the mode you are in)" if mode.slug == context.mode.slug else ""
        whose = f" (from {mode.origin} in the workspace)" if mode.source == "workspace" else ""
        about = summary(mode.when or mode.description or mode.role)
        lines.append(f"- {mode.name}, `{mode.slug}`{here}{whose}: {about}")
    how = " Switch with `switch_mode` when another one fits what is to be done." if context.has("switch_mode") else ""
    limits = [f"- {rule.group}: {rule.files}" for rule in context.mode.groups if rule.file_pattern]
    only = "\n\nIn this mode you may only work on files of these kinds:\n" + "\n".join(limits) if limits else ""
    return f"====\n\nMODES\n\nWhat you may do depends on the mode.{how}\n\n" + "\n".join(lines) + only


def system_information(context: "PromptContext") -> str:
    system = context.system
    lines = [f"Operating system: {system.os}", f"Shell: {system.shell}"]
    if system.home:
        lines.append(f"Home directory: {system.home}")
    lines.append(f"Workspace: {context.workspace}")
    return "====\n\nSYSTEM INFORMATION\n\n" + "\n".join(lines)
