"""How results are shown: as tables that print, and as plots.

Uses `basis` for names. Libraries that draw or hold tables are imported when they are needed.
"""
