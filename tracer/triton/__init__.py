"""Unmodified Triton kernels: traced by executing them, for all programs of a launch at once."""
