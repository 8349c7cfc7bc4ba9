"""Helpers of mazes, environments and policies: names, options, files, random streams, tables, notebooks, devices."""
