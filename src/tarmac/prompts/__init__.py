"""What the model is told: who it is, what it may use, where it is, what people want of it.

modes.py         modes, built in and from files
system.py        the system prompt, section by section
environment.py   what goes on around the task, with each turn
instructions.py  AGENTS.md, CLAUDE.md and rules
"""
