"""Linear models on polynomial features, without building them.

They are scikit-learn estimators on X itself. A solver sees the expansion only as a
PolynomialOperator. Uses `operator`, and `estimators` for the columns and for reading X.
"""
