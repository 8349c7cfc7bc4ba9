"""The command line as `python -m maze_nca_gym`."""

import sys

from maze_nca_gym.cli import main

if __name__ == "__main__":  # spawned worker processes import this file too
    sys.exit(main())
