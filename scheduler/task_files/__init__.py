"""Task graphs in standard formats: job shops and standard task graphs, read from files."""
