"""What a Triton kernel holds while it runs for all programs: types, values, memory, and what accesses cover."""
