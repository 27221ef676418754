"""A line of text → commands, words and control flow; and a second reader that must agree.

In: text and a dialect. Out: CommandLine. Pure but for the parser (shfmt), a process of its own. Nothing here judges.
"""
