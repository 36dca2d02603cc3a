"""What is recorded while a kernel runs: a tape for all programs, and the graph of any one of them."""
