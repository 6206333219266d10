"""What Dask and Spark share: what a block of rows contributes to a fit, and how it is summed.

It uses models, and knows neither Dask nor Spark.
"""
