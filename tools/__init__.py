"""What maintainers run to publish a model or a pack, compare digests, and make what `docs/` shows; not installed."""
