"""What a GPU does: steps of environments, rollouts and updates, each way to run them, in one call."""
