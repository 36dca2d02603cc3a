"""What is known of a graph on a machine, computed once: report, linter, fitting and commands hand it on."""
