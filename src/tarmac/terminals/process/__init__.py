"""Processes and pseudo-terminals, as the kernel shows them: start, watch, find, signal, and see who waits for input."""
