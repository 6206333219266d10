"""What Dask and Spark share: the rows of a fit as blocks on a cluster, and the order of sums.

It knows neither Dask nor Spark: each implements `row_store.Cluster`.
"""
