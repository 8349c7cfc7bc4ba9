"""Levels that evolve against policies: what is measured, the loop, what it leaves in a folder, and figures."""
