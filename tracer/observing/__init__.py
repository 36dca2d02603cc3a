"""Tracing a kernel with an eye on its branches: which way each went, and what decided it."""
