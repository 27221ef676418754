"""What programs do: the tables, the checks that no table can say, and the two questions asked of them.

readonly.py proves that a command only reads, and says how to run it without a shell. risk.py says what all others
would do. The tables in rules/ are data.
"""
