"""The scikit-learn transformers, and the parameters and checks that they share.

An estimator stores parameters, reads its input and calls the packages that do the work. Uses
`expansion`, `observation` and `files`, and only the public interface of scikit-learn.
"""
