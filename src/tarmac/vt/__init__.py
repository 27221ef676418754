"""PURE: what programs write to a terminal. Bytes in, values out.

marks.py                   bytes → output, shell-integration marks, questions to the terminal
sieve.py text.py page.py   output → plain text, as a reader saw it, also while it comes; text that was hidden
fold.py buffer.py          text of bounded length, bytes in bounded memory
screen.py                  rows, cursor and highlights of a full-screen program
keys.py cells.py           names of keys → bytes; how text fills columns
"""
