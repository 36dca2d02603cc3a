"""What stands in for the package ``triton``, and for a GPU under torch, while a script runs in a session."""
