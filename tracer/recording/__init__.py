"""The recorder: rows of a graph's tables from calls. Usable without ``tl``."""
