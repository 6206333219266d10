"""From file to file in bounded memory: learning columns and expanding rows.

Uses `files` at both ends, and `expansion` or `observation` in between. It uses neither argparse
nor the terminal: the caller passes arguments and a progress object to report to.
"""
