"""Helpers that mazes, environments and policies share: names, options, files, random streams, tables, notebooks,
devices."""
