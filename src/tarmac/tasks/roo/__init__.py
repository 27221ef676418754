"""Roo-Code's own files, in and out: a task folder of it becomes a task here, and one of ours a folder that it opens.

files.py    its files → RooTask, or ImportFailed with the place of the damage
taking.py   RooTask → facts of our log       (PURE)
telling.py  facts → its two histories        (PURE)
writing.py  a task → its files
"""
