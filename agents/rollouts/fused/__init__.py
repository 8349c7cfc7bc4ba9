"""Rollouts and their gradients in machine code, several times faster on a CPU than one PyTorch operation at a time."""
