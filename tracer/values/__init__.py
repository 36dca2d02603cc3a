"""What a kernel holds in its hands: handles of scratch, tensors and regions of global memory, scopes."""
