"""A process of `LocalExecutor`, which makes a single call and ends together with its parent process.

The process imports the modules of the call by name. It never imports the parent's script, because a script without
`if __name__ == "__main__":` would run again, and commands that were typed or piped into Python cannot be imported.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing.reduction import ForkingPickler
from typing import Any

# Ctrl-C reaches this process too, which ignores it: the parent sends SIGTERM instead.
_BEGIN = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); sys.path[:] = sys.argv[1:]; "
    "from maze_nca_gym.agents.runs.worker import main; main()"
)


def begin(
    function: Callable[[Any], Any], argument: Any, environ: Mapping[str, str]
) -> tuple[subprocess.Popen[bytes], Future[Any]]:
    """Start a process that makes a call; return the process, and the call as a `Future`.

    Args:
        function: the function to call, which must be importable. The function and its result are pickled.
        argument: the argument of the function, which is pickled too.
        environ: environment variables that the process gets in addition to the variables of this process.

    Returns:
        The process and the call. The call's `result()` raises BrokenProcessPool if the process dies.
    """
    sent, call, pipe = bytes(ForkingPickler.dumps((function, argument))), Future[Any](), subprocess.PIPE
    process = subprocess.Popen(
        [sys.executable, "-c", _BEGIN, *map(str, sys.path)],
        stdin=pipe,
        stdout=pipe,
        stderr=subprocess.DEVNULL if sys.stderr is None else None,
        env={**os.environ, **environ},
    )
    call.set_running_or_notify_cancel()

    def follow() -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(len(sent).to_bytes(8, "big") + sent)
            process.stdin.flush()
            returned, result = ForkingPickler.loads(process.stdout.read())
        except Exception as error:  # the class of an error may refuse its own arguments
            died = f"its process ended with {process.wait()}" if isinstance(error, OSError | EOFError) else str(error)
            call.set_exception(BrokenProcessPool(died))
        else:
            (call.set_result if returned else call.set_exception)(result)
        process.wait()
        process.stdout.close()
        with suppress(OSError):
            process.stdin.close()  # only now, since the process ends itself when its stdin closes

    threading.Thread(target=follow, daemon=True).start()
    return process, call


def main() -> None:
    """Read a pickled call from stdin, make the call, and write its pickled result or exception to stdout."""
    sys.argv[1:] = []
    source, target = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # stdout contains only the result, so that the prints of the call go to stderr
    sent = source.read(int.from_bytes(source.read(8), "big"))

    def end_with_parent() -> None:
        source.raw.read()
        os._exit(1)  # so that the call does not write into its folder while a later command works there

    threading.Thread(target=end_with_parent, daemon=True).start()
    try:
        function, argument = ForkingPickler.loads(sent)
        answer = ForkingPickler.dumps((True, function(argument)))
    except BaseException as error:  # including KeyboardInterrupt of a run, and SystemExit of an imported module
        try:
            answer = ForkingPickler.dumps((False, error))
        except Exception:
            answer = ForkingPickler.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))
    with target:
        target.write(answer)
