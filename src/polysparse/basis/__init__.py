"""Which monomials an expansion has, in which order, and what they are called.

Pure arithmetic on exact integers: nothing here sees a matrix, and nothing is ever as large as an
expansion unless all of its columns are asked for. Uses `engine` to rank and unrank many tuples.
"""
