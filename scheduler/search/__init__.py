"""Searching on plain arrays: list scheduling, local search, limits of scratch, heads and bounds."""
