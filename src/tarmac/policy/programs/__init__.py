"""What programs do: one description for each, the checks that no table can say, and the questions asked of them.

program.py has the descriptions; the tables in rules/ are its data. readonly.py proves that a command only reads, and
says how to run it without a shell. risk.py says what all others would do.
"""
