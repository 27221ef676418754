"""The tables, as data: plain dictionaries and lists in Python, which the interpreter keeps compiled (ADR 121)."""
