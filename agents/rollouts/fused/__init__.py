"""Rollouts that run from the first step to the last in machine code, with gradients: several times faster on a CPU."""
