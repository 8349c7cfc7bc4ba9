"""The smallest maze on which a policy fails: how mazes are examined, searched and shrunk, and the record of it."""
