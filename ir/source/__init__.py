"""Where something stands in an author's source: frames, locations, digests of files."""
