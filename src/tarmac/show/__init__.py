"""What a person sees of a task at a terminal, and how they are asked.

Text from a model, a command or a file is made harmless first (`look.py`). Only our own escape sequences reach the
person's terminal.
"""
