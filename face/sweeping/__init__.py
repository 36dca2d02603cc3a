"""Sweeps: every combination of some values of a kernel's parameters, launches, policies, buffers and machines."""
