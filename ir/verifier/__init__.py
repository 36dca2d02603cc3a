"""The invariants of a graph, as rules."""
