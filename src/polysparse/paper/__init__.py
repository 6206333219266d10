"""The paper's experiments: what is measured, how, and the page that shows it.

Uses `expansion` as a user would, scikit-learn as the peer, and matplotlib.
"""
