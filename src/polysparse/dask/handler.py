"""What other rooms hand over to Dask: a function for each of their functions and methods."""
