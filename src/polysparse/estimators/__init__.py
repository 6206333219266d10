"""The scikit-learn transformers, and the parameters and checks that they share.

An estimator stores parameters, reads its input and calls the rooms that do the work. Uses
`expansion`, `observation` and `files`; scikit-learn only by its public interface.
"""
