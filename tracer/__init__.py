"""Runs a kernel once per rank in trace mode and records its graph: the language ``tl``, handles, kernels, launches."""
