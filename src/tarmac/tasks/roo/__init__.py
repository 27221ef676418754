"""Import and export of Roo-Code tasks.

task_files.py    its files → RooTask, or ImportFailed with the place of the damage
importer.py      RooTask → facts of our log       (PURE)
exporter.py      facts → its two histories        (PURE)
"""
