"""The command `check_proofs`: Coq's kernel checks theorems about rules and networks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from maze_nca_gym.support.options import Shown, Stored, check, checked

from ..runs import check_folder
from .run import compile_automaton

if TYPE_CHECKING:
    from .automaton import Automaton
    from .kernel.theorems import Checked


@checked
def check_proofs(
    folder: Annotated[str | Path | None, Shown("FOLDER", positional=True)] = None,
    *,
    automaton: Annotated[str | Automaton | None, Stored(str), Shown("NAME|MODULE:NAME")] = None,
    out: Annotated[str | Path, Shown("FOLDER")] = Path("runs/proofs"),
) -> Checked:
    """Check theorems about rules and networks with Coq's kernel, for mazes of every size.

    Without arguments, the command checks the package's own theorems. It prints the rules of the canonical shortest path
    and the networks compiled from them in all 24 orders of directions, and the learned network
    nca-shortest-path-hinted. The theory states that they draw the first shortest path on every maze. It also states
    that the rules of shortest-path-healing, and the network that learned these rules, draw the path again after any
    sequence of mazes. `coqc` compiles all files, and `coqchk` checks the result again. The check takes up to ten
    minutes and needs Coq: `apt-get install coq`.

    With `automaton`, the command checks the theorem that `prove` finds for this automaton in terms of a fixpoint, and
    that the network compiled from it, weights included, outputs the same answers. If the theory covers the theorem but
    not the network, the command prints the reason and fails.

    >>> check_proofs().holds
    True

    Args:
        folder: folder that `compile-automaton` wrote with `--coq` or `--coq-proof`. None: the package's own theorems
            are checked, or the theorem of `automaton`.
        automaton: automaton whose theorem and network are printed and checked, see `compile_automaton`.
        out: folder that receives the printed files.

    Returns:
        The theorems in words, the digests of their subjects, and whether each theorem is proven without an axiom.

    Raises:
        ValueError: a folder without such files or with another theory; a folder together with an automaton; a theorem
            or network that the theory does not cover; or a file that the kernel refuses. The message then contains the
            kernel's message.
        OSError: Coq is missing, too old or was killed, or a file could not be written.
    """
    from .kernel.theorems import SHORTEST_PATH, check_printed, coq_version, package_file, read_theory, write_theory

    check(folder is None or automaton is None, f"give a folder or an automaton, not both: {folder} and {automaton}")
    if folder is None:
        check_folder("--out", out)
    coq = coq_version()
    if automaton is not None:
        compile_automaton(automaton, coq_proof=out)
    elif folder is None:
        printed = {"Package": package_file()}
        write_theory(Path(out), SHORTEST_PATH, printed)
        return check_printed(coq, SHORTEST_PATH, printed)
    return check_printed(coq, *read_theory(Path(out if folder is None else folder)))
