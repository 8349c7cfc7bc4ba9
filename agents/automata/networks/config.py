"""The options of a training run on hints."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, cast

from maze_nca_gym.mazes.families import FAMILIES, LEAST_SIZE
from maze_nca_gym.mazes.orders import with_order
from maze_nca_gym.support.options import Above, Between, OneOf, check, check_known, check_options, to_json

if TYPE_CHECKING:
    from ..automaton import Automaton


@dataclass(frozen=True)
class HintConfig:
    """The options that determine the weights of a run."""

    automaton: str = "shortest-path"
    """Automaton to learn: shortest-path, shortest-path-healing, diameter, or module:NAME of your own automaton."""
    order: str | None = None
    """Order of directions of the automaton, such as DLRU. It is appended to the automaton's name. None keeps the
    automaton's own order, usually ULDR: up, left, down, right."""
    families: Annotated[tuple[str, ...], OneOf(FAMILIES, "family of levels")] = tuple(filter(FAMILIES.ships, FAMILIES))
    """Families of the levels on which the automaton runs to collect patches; by default the families of this
    package."""
    sizes: Annotated[tuple[int, ...], Between(LEAST_SIZE)] = (4, 6, 9, 12)
    """Inner sizes of the levels, at least 4."""
    n_levels: Annotated[int, Between(2)] = 64
    """Number of levels of each family, variant and size, at least 2; half of them have no border."""
    n_mazes: Annotated[int | None, Between(1)] = None
    """Number of mazes, of the families in turn, to learn from instead of n_levels for each. Linear programming then
    finds the weights in seconds. Nothing is recombined, and the options of updates have no effect. None means gradient
    descent."""
    n_questions: Annotated[int, Between(0)] = 1_000
    """With n_mazes: largest number of questions. A question is a patch on which the certificate finds the network
    wrong, the worst patch of its signal and kind of error. The rules give the answer."""
    n_recombined: Annotated[int, Between(0)] = 50_000
    """Number of patches that combine tiles of observed patches, in addition to the observed patches, or 0 for none."""
    n_updates: Annotated[int, Between(1)] = 4_000
    """Number of updates of the weights."""
    batch_size: Annotated[int, Between(2)] = 2_048
    """Number of patches in an update. All patches have the same probability, no matter how often they were observed.
    Once the certificate has rejected patches, half of each batch is drawn from the rejected patches."""
    learning_rate: Annotated[float, Above(0)] = 0.02
    """Initial learning rate of Adam; it falls to 0 as a cosine."""
    margin: Annotated[float, Between(0)] = 0.25
    """How far a sum should be above 1 where its signal is on, and below 0 where it is off."""
    sparsity: Annotated[float, Between(0)] = 3e-4
    """Initial cost of the sum of absolute weights; it falls to 0 with the learning rate."""
    n_updates_again: Annotated[int, Between(1)] = 1_000
    """Number of updates in each later round, at half the learning rate."""
    n_rounds: Annotated[int, Between(0)] = 30
    """Maximum number of later rounds, in which the patches that the certificate rejects are examples too."""
    n_worst: Annotated[int, Between(1)] = 100
    """Largest number of rejected patches that each later round adds for each signal and each kind of error."""
    seed: Annotated[int, Between(0)] = 0
    """Seed of all randomness: levels, patches and batches."""

    def __post_init__(self) -> None:
        check_options(self)
        if self.order is not None:
            object.__setattr__(self, "automaton", with_order(self.automaton, self.order))
            object.__setattr__(self, "order", None)
        check(bool(self.families), f"families must name at least one of {', '.join(FAMILIES)}")
        check(bool(self.sizes), "sizes must hold at least one number")

    @classmethod
    def of(cls, automaton: str | Automaton, /, **given: Any) -> HintConfig:
        """Return the configuration for an automaton, with the automaton's values for all options that are not given.

        Raises:
            ValueError: an unknown automaton, or a value of the wrong type or out of range.
        """
        from ..registry import find_automaton  # here, as this builds all automata

        known = find_automaton(automaton, given.get("order"))
        values = {"automaton": automaton if isinstance(automaton, str) else known.name, **known.learning, **given}
        check_known(values, [field.name for field in fields(cls)], "a configuration")
        return cls(**values)

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a JSON-serialisable dict, from which the class makes an equal configuration."""
        return cast(dict[str, Any], to_json(self))
