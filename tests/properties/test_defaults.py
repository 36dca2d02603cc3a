"""What an argument stands for that is left out: each row of the table leaves it out, says it, and says another."""
