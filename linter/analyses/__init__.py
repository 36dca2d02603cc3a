"""What rules look at: analyses of a graph, each found once, worded by the rules."""
