"""What Dask and Spark share: a fit to rows that a cluster holds, and the order of its sums.

It uses models, and knows neither Dask nor Spark: they give a Cluster.
"""
