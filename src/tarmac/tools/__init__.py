"""What an agent can do with its hands: read, search and change files; later, every tool of a task.

edit/           pure: text and an edit in, text or a reason out; and writing a file so that it is old or new, never torn
listing.py      what is in a folder, without what git ignores
reading.py      files as numbered lines; PDF and DOCX as text (documents.py)
searching.py    ripgrep, bounded
definitions.py  the classes and functions of a file
"""
