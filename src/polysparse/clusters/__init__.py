"""What Dask and Spark share: the rows of a fit as blocks on a cluster, and the order of sums.

This package imports neither: each implements `row_store.Cluster`.
"""
