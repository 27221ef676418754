"""Where a path leads, and what is special about it: inside or outside, ignored, protected, secret.

In: a name as it is written, a directory, a workspace. Out: Place, PathStatus. Nothing here knows programs.
"""
