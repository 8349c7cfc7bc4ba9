"""`maze-nca-gym train-hinted`: its options, and what it prints."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import arg

from maze_nca_gym.agents.automata import AUTOMATA
from maze_nca_gym.agents.evaluation import FAMILIES
from maze_nca_gym.agents.hinting.config import HintConfig
from maze_nca_gym.cli.options import INTEGER, NUMBER
from maze_nca_gym.cli.output import FAILED, complain, print_facts

if TYPE_CHECKING:
    from maze_nca_gym.agents import Policy
    from maze_nca_gym.agents.hinting.certificate import Certificate


def _option(name: str, metavar: str) -> Any:
    """Describe an option for the help, with its default for each automaton."""
    words = {automaton: _words(getattr(HintConfig.of(automaton), name)) for automaton in AUTOMATA}
    usual = words.pop(HintConfig().automaton)
    others = [f"{word} for {automaton}" for automaton, word in words.items() if word != usual]
    return arg(metavar=metavar, help_behavior_hint=f"(default: {'; '.join([usual, *others])})")


def _words(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


@dataclass(frozen=True)
class HintOptions:
    """Options that determine the weights."""

    families: Annotated[tuple[str, ...] | None, _option("families", "{" + ",".join(FAMILIES) + "} …")] = None
    """Families of the levels on which the automaton is watched."""
    sizes: Annotated[tuple[int, ...] | None, _option("sizes", "SIZE …")] = None
    """Inner sizes of the levels, at least 4."""
    n_levels: Annotated[int | None, INTEGER, _option("n_levels", "INT")] = None
    """Number of levels of each family, variant and size, at least 2; half of them have no border."""
    n_recombined: Annotated[int | None, INTEGER, _option("n_recombined", "INT")] = None
    """Number of patches put together from tiles seen, in addition to the patches seen."""
    n_updates: Annotated[int | None, INTEGER, _option("n_updates", "INT")] = None
    """Number of updates of the weights."""
    batch_size: Annotated[int | None, INTEGER, _option("batch_size", "INT")] = None
    """Number of patches in an update."""
    learning_rate: Annotated[float | None, NUMBER, _option("learning_rate", "NUMBER")] = None
    """Initial learning rate of Adam."""
    margin: Annotated[float | None, NUMBER, _option("margin", "NUMBER")] = None
    """Smallest distance of a sum from 0, below or above."""
    largest: Annotated[float | None, NUMBER, _option("largest", "NUMBER")] = None
    """Upper bound of a signal's second channel."""
    extremes: Annotated[bool | None, _option("extremes", "{True,False}")] = None
    """Draw second channels of 0 and of --largest more often than other values."""
    jitter: Annotated[float | None, NUMBER, _option("jitter", "NUMBER")] = None
    """Initial size of the errors added to signals in the states, 0 to 1."""
    ridge: Annotated[float | None, NUMBER, _option("ridge", "NUMBER")] = None
    """Number added to the inputs' second moments before they are whitened."""
    balanced: Annotated[bool | None, _option("balanced", "{True,False}")] = None
    """Draw half of each batch so that all signals are switched on equally often."""
    sparsity: Annotated[float | None, NUMBER, _option("sparsity", "NUMBER")] = None
    """Initial cost of the sum of absolute weights; 0 also skips the rounds described below."""
    n_dense: Annotated[int | None, INTEGER, _option("n_dense", "INT")] = None
    """Number of rounds that learn from patches on which the certificate fails, with all weights."""
    least_weight: Annotated[float | None, NUMBER, _option("least_weight", "NUMBER")] = None
    """Threshold below which weights are then set to 0 for good, before one more round."""
    n_updates_again: Annotated[int | None, INTEGER, _option("n_updates_again", "INT")] = None
    """Number of updates in each of these rounds."""
    n_rounds: Annotated[int | None, INTEGER, _option("n_rounds", "INT")] = None
    """Maximum number of repair rounds, each fixing what the certificate rejects."""
    n_worst: Annotated[int | None, INTEGER, _option("n_worst", "INT")] = None
    """Largest number of patches that a repair round adds for each signal and each kind of error."""
    seed: Annotated[int | None, INTEGER, _option("seed", "INT")] = None
    """Seed of all randomness, at least 0; the same seed gives the same weights."""


@dataclass(frozen=True)
class TrainHinted:
    """Train a policy on hints: everything that an automaton holds at every tile at every step.

    It takes half a minute on one core for shortest-path, a minute for shortest-path-healing, which checks itself and
    restarts when the maze changes, and some minutes for diameter. So there is nothing to resume. At the end, a
    certificate proves that the weights do the same as the automaton on every maze, in float32. The exit code is 1 if it
    cannot. The folder receives model.safetensors, which the other commands accept as a policy, metrics.jsonl, and
    config.json with the certificate.
    """

    automaton: Annotated[str, arg(metavar="NAME")] = "shortest-path"
    """Automaton to learn: shortest-path, shortest-path-healing, diameter, or module:NAME of one of your own."""
    out: Annotated[Path, arg(metavar="FOLDER")] = Path("runs/train-hinted")
    """Folder of the run."""
    threads: Annotated[int, INTEGER] = 1
    """Number of CPU threads; another number can give other weights in the last digits."""
    overwrite: bool = False
    """Delete the run in the folder, if there is one, and start a new one."""
    learning: HintOptions = field(default_factory=HintOptions)

    def run(self) -> int:
        """Learn, prove, save, and return the exit code.

        Raises:
            ValueError: a bad option, or a folder with a run.
            OSError: a file could not be written.
        """
        options = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "learning"}
        from maze_nca_gym.agents.hinting.run import train_hinted

        model, certificate = train_hinted(**options, **vars(self.learning))
        self._summarise(model, certificate)
        return 0 if certificate.holds else FAILED

    def _summarise(self, model: Policy, certificate: Certificate) -> None:
        """Print what came out, and where it is."""
        from maze_nca_gym.agents.runs import METRICS, duration, read_last
        from maze_nca_gym.agents.training.loop import MODEL

        last = read_last(self.out / METRICS)  # an update, or a round of repair
        print_facts(
            {
                "policy": f"NCA, {model.task}, {model.n_weights:,} weights",
                "learning": f"{last['update']:,} updates, {duration(last['seconds'])}",
                "certificate": _in_words(certificate),
            }
        )
        print(f"model: {self.out / MODEL}")
        if not certificate.holds:
            advice = "try more --n-updates, or another --seed"
            complain(f"the weights are not proven to do what the automaton does; {advice}")


def _in_words(certificate: Certificate) -> str:
    if certificate.holds:
        return "does what the automaton does on every maze, of any size, at every iteration: proven, in float32"
    return (
        f"not proven: sums reach {certificate.silent:.3g} where a channel must be silent, {certificate.least:.3g} to "
        f"{certificate.most:.3g} where not (0 to {certificate.largest:g}), and signals are off by "
        f"{certificate.error:.3g} ({certificate.tolerance:g})"
    )
