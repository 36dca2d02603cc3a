"""What a help proposes, as edits of the source that can be applied: made only where following them is sure to help."""
