"""The command line as `python -m maze_nca_gym`."""

import sys

from maze_nca_gym.cli import main

if __name__ == "__main__":  # processes that start from this one import this file
    sys.exit(main())
