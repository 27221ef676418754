"""The tools that a model can call: files, commands, terminals, and the task itself.

tool.py        what a tool is: arguments → prepare → Ready → act → Done
toolbox.py     all tools by name, also those of other packages
call_decoder.py  describes the tools to a model and reads its calls

read_file.py list_files.py search_files.py code_definitions.py codebase_search.py     read the workspace
fetch_url.py                                                       read a page
edit_file.py                                                       change it, through file_change.py
execute_command.py persistent_terminal.py                          run commands
read_terminal.py                                                   look at them
task_tools.py                                                      questions, result, mode, todo list

file_access.py      which paths a tool may touch               terminal_access.py   which terminals
report.py terminal_status.py                                   what the model is told about commands and terminals
tree.py             which files were added and removed
servers/            tools of MCP servers
output/             pure: what a command printed in, values and hints out
edit/               pure: text and an edit in, text or a reason out
"""
