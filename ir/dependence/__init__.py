"""Edges from accesses and channels."""
