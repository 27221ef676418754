"""One live shell: how it starts, what it is told, what it tells, and how a command in it ends.

dialects/ and integration/ know bash, zsh and fish. `Session` is a shell on its PTY, `PtyTerminal` the terminal with it.
This package uses `process`, `input` and `output`, which know nothing of shells.
"""
