"""Files in and out: a module for each format, what outputs say of themselves, atomic names.

Sources are read in blocks of rows; sinks have no name before they are whole. Messages name the
arguments of functions, never flags of the command line. Uses `matrix` and `columns`.
"""
