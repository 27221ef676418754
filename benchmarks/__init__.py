"""How fast Tarmac is, as ratios to the least any program could do on the same machine in the same minute.

`python -m benchmarks` prints the table; docs/benchmarks.md says what the numbers can and cannot carry.
"""
