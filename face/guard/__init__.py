"""The one way in which the code of a kernel's author is run: importing it, tracing it, calling its references."""
