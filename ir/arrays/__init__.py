"""Columns of numbers, and maps that do not change."""
