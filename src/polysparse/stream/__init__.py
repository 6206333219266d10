"""From file to file in bounded memory: learning columns, expanding rows.

Uses `files` at both ends and `expansion` or `observation` between them. It knows neither argparse
nor a terminal: the caller passes arguments, and a progress to report to.
"""
