"""polysparse on Dask: lazy arrays of blocks, expanded and fitted where the blocks are.

It uses the rooms above through their functions, and does no arithmetic of its own.
"""
