"""What goes into a running command: when it waits for input, prepared answers, secrets."""
