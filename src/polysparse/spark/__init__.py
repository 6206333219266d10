"""polysparse on Spark: transformers, estimators and models of pyspark.ml.

It uses the rooms above through their functions, and does no arithmetic of its own.
"""
