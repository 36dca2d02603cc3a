"""Kernels written as a user would write them: against the public names of ``kernscope`` only.

Each file holds one kernel, its launches and a numpy reference of the same computation.
"""
