"""What a schedule is and tells: causes, critical chain, slack, the price of reuse, policies side by side."""
