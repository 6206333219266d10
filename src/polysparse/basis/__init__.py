"""The monomials of an expansion: which there are, in which order, and their names.

Everything here is arithmetic on exact integers. Nothing sees a matrix, and nothing is ever as large
as an expansion unless all of its columns are requested. Uses `engine` to rank and unrank many
tuples.
"""
