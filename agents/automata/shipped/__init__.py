"""The automata that are included in the package. The registry lists them."""
