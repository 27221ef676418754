"""The prompts of a model: the system prompt, and the environment details of each turn.

system.py        the system prompt, section by section
environment_details.py  <environment_details>
instructions.py  AGENTS.md, CLAUDE.md, rules, and files that replace the system prompt
modes.py         all modes; mode.py: one mode, and its file formats
located.py       TOML and YAML with line numbers
safe_files.py    read files of a workspace that nobody has checked
"""
