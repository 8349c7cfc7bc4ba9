"""Automata on named booleans: local rules that networks learn, and are proven to follow."""
