"""Pictures of a graph: folded, written as DOT, laid out."""
