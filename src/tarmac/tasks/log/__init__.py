"""The log of one task: an append-only file of facts, written by one process and read by any.

writer         TaskLog: create, lock and recover a log; append facts, durable before anything acts on them
reader         read a log, or follow it while it grows
records        events ⇄ lines of the file: sequence number, JSON, checksum
disk           synced writes, contents that are too large for a line, one thread for blocking work
"""

from tarmac.tasks.log.writer import LINGER, Listener, TaskLog, create_log, open_log

__all__ = ["LINGER", "Listener", "TaskLog", "create_log", "open_log"]
