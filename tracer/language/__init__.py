"""The functions of ``tl``: what they take, check and record."""
