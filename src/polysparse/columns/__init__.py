"""Which output columns there are: all of a basis, chosen ones, or hashed ones.

Column spaces are pure descriptions: they can be compared, described as a dict, pickled and sent to
another process. They compute nothing on data; an engine fills them. Uses `basis`.
"""
