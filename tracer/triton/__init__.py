"""The front end for Triton kernels as they stand: a kernel's source is run once for all programs of a launch."""
