"""Machines: their files, presets and engines, and what a node costs on them."""
