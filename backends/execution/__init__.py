"""Execution on numpy, in any order, at the traced addresses; inputs, references and where a difference comes from."""
