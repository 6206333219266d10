"""Losses of rows: a file for each. `interface` says what a solver needs to know of one."""
