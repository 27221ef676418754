"""What an agent can do with its hands: files, commands, terminals, and a word with the person.

tool.py         what a tool is: arguments → prepare → Ready → act → Done      toolbox.py   all of them by name
schema.py, decoding.py   what a model is told of a tool, and its calls read back
files.py, looking.py     reading, listing, searching
writing.py, editing.py, patches.py   edits, which change.py writes
command.py, persistent.py, terminal_*.py   commands and terminals     report.py, boundary.py   what is told of them
talk.py         questions, the result, the mode, the todo list        news.py      terminals, for the next turn

and what they are made of, without models or permission:

edit/           pure: text and an edit in, text or a reason out; and writing a file so that it is old or new, never torn
listing.py      what is in a folder, without what git ignores
reading.py      files as numbered lines; PDF and DOCX as text (documents.py)
searching.py    ripgrep, bounded
definitions.py  the classes and functions of a file
"""
