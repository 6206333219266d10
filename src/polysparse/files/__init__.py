"""Files in and out: a module per format, descriptions of outputs, and atomic renaming.

Sources are read in blocks of rows; a sink gets its final name only once it is complete. Messages
name the arguments of functions, never flags of the command line. Uses `matrix` and `columns`.
"""
