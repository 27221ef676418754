"""A task on a terminal: its facts and signals as text, and asking the person who sits there.

Whatever comes from a model, a command or a file is made harmless first (`harmless.py`): the only escapes that reach
the person's terminal are our own.
"""
