"""Search: the columns of an expansion that score highest against a target, without building it.

Uses `engine` for the walk over all columns, `display` for tables and plots of what it finds.
"""
