"""The paper's experiments: what is measured, how, and the page that presents it.

Uses `expansion` as a user would, scikit-learn for comparison, and matplotlib.
"""
