"""The automata that ship. The registry lists them."""
