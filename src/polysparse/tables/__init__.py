"""Tables of variables, and how they become sparse matrices.

`reading` reads the columns of a table of pandas, polars or Arrow: levels, or numbers. `learning`
counts levels, `variables` knows the features that a column becomes, and `encoding` assembles the
matrix. An encoding is a description that can be saved. Optional libraries are imported where they
are used.
"""
