"""Rollouts on a GPU with few launches: in one Triton kernel for each direction, or as a recorded CUDA graph."""
