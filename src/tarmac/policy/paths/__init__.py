"""Where a path leads, and what is special about it: inside or outside, ignored, protected, secret.

In: a name as it is written, a directory, a workspace. Out: Place, Look. Nothing here knows programs.
"""
