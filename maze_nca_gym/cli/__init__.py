"""The command `maze-nca-gym`.

The package has a module for each command. torch, numba and pygame are imported only when a command that needs them
runs, so that `--help` answers at once.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

from gymnasium.error import DependencyNotInstalled

from maze_nca_gym import __version__
from maze_nca_gym.cli.output import (
    FAILED,
    INTERRUPTED,
    WRONG_USAGE,
    JobError,
    complain,
    complaining,
    importing_from_here,
    one_command,
    writable_streams,
)

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: the arguments; by default `sys.argv[1:]`.

    Returns:
        The exit code: 0 for success, 1 for a failed job, 2 for wrong usage or bad input (then nothing has been
            written), 130 after Ctrl-C.
    """
    arguments = sys.argv[1:] if argv is None else list(argv)
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    with writable_streams(), one_command() as written:
        try:
            if arguments in (["--version"], ["-V"]):
                print(f"maze-nca-gym {__version__}")
                return 0
            if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # as `maze_nca_gym/__init__.py` sets it for a command
                signal.signal(signal.SIGINT, signal.default_int_handler)
            from maze_nca_gym.cli.commands import COMMANDS

            with complaining(), importing_from_here():
                code = COMMANDS.read(arguments, "maze-nca-gym")()
            sys.stdout.flush()  # here, where a closed pipe is still handled below
            return code
        except SystemExit as end:  # after `--help`
            return end.code if isinstance(end.code, int) else 0
        except KeyboardInterrupt as interruption:
            complain(str(interruption) or "interrupted")
            return INTERRUPTED
        except BrokenPipeError:  # whoever read our output, such as `head`, has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return FAILED
        except (ValueError, JobError, OSError, MemoryError, DependencyNotInstalled) as error:
            files = [str(path) for path in written if path.exists()]
            named = files if len(files) < 5 else [*files[:3], f"{len(files) - 3} more"]
            complain(f"error: {str(error) or 'out of memory'}{'; written before: ' * bool(files)}{', '.join(named)}")
            return WRONG_USAGE if isinstance(error, ValueError) and not files else FAILED
