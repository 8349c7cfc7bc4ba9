"""The command `doubt`: it searches for a maze on which a policy fails, shrinks this maze, and records the result."""
