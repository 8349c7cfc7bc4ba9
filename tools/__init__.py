"""What maintainers run to publish a model or a pack of levels; no part of the installed package."""
