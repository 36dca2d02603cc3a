"""A graph as text and as a file."""
