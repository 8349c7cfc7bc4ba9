"""The tree of commands, and their parsing.

A command consists of a function of the library, which does the work, and a function that prints its result.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

from maze_nca_gym import agents
from maze_nca_gym.agents.policies.registry import import_own
from maze_nca_gym.cli import automata, bench, doubt, evaluate, evolve, levels, policies, solve, sweep, train
from maze_nca_gym.cli.completion import SHELLS
from maze_nca_gym.cli.reading import filled, names_of, read_values, show_help, split_words
from maze_nca_gym.mazes.benchmark_sets import BENCHMARK_SETS
from maze_nca_gym.mazes.levels import list_prefabs
from maze_nca_gym.mazes.loading import list_packs
from maze_nca_gym.support.names import NAMED, unknown_name
from maze_nca_gym.support.options import OneOf, Option, Shown, check, flag, further_options, options_of_call


@dataclass(frozen=True)
class Command:
    """A command.

    Attributes:
        run: a function that takes the options, prints the results and returns the exit code.
        function: the function of the library that does the work. Its signature defines the options and its docstring
            the help; arguments that `run` names itself are added or replace them. None if `run` has all options.
        examples: example arguments, one line each.
    """

    run: Callable[..., int]
    function: Callable[..., Any] | None = None
    examples: tuple[str, ...] = ("",)

    @property
    def about(self) -> str:
        """The description of the command: the paragraphs of both docstrings up to the first section, without
        examples."""
        functions = [function for function in (self.function, self.run) if function is not None]
        paragraphs = [text for function in functions for text in (inspect.getdoc(function) or "").split("\n\n")]
        return "\n\n".join(text for text in paragraphs if not text.startswith((">>>", "Args:", "Returns:", "Raises:")))

    @property
    def options(self) -> dict[str, Option]:
        """The options by name, except for options that depend on the values of other options."""
        options = {} if self.function is None else dict(options_of_call(self.function))
        for name, own in options_of_call(self.run).items():
            options[name] = replace(options[name], type=own.type, default=own.default) if name in options else own
        options["import"] = Option("import", str, default=None, group=_import, style=Shown("MODULE"))
        return {name: option for name, option in options.items() if not option.style.python_only}

    def read(self, words: Sequence[str], prog: str) -> Callable[[], int]:
        """Return a function that runs the command with the options in `words`.

        Args:
            words: the words of the command line after the command.
            prog: the words of the command, such as "maze-nca-gym solve", for messages.

        Raises:
            SystemExit: 0 after printing the requested help.
            ValueError: a module that cannot be imported, an unknown option, or a bad value.
        """
        own = options = self.options
        by_name, _ = split_words(own, words, prog)
        _import(*by_name.get("import", ()))
        further = further_options(self.function)
        if further is not None:
            named: dict[str, str] = {}
            for _ in range(1 + len(further.named_by)):  # what is named may have options, whose words name no more
                options = {**own, **further.options_of(named), **own}
                by_name, _ = split_words(options, words, prog)
                named = {name: by_name[name][0] for name in further.named_by if name in by_name}
        if {"-h", "--help"} & {*words}:
            examples = [f"{prog} {example}".strip() for example in self.examples]
            show_help(options, prog, self.about, examples, (self.function, self.run, _import))
        values = read_values(options, words, prog)
        values.pop("import", None)
        return partial(self.run, **values)


@dataclass(frozen=True)
class Commands:
    """Commands under one name, in groups.

    Attributes:
        about: a line about these commands.
        groups: heading -> the commands below it in the help, by name.
    """

    about: str
    groups: Mapping[str, Mapping[str, Command | Commands]]

    @property
    def within(self) -> dict[str, Command | Commands]:
        """All commands by name."""
        return {name: command for group in self.groups.values() for name, command in group.items()}

    def read(self, words: Sequence[str], prog: str) -> Callable[[], int]:
        """Return a function that runs the command named in `words`, with the options in the other words.

        Args:
            words: the words of the command line.
            prog: the words before them, such as "maze-nca-gym runs", for messages.

        Raises:
            SystemExit: 0 after printing the help, which was requested or stands for a missing command.
            ValueError: an unknown command, preset or option, or a bad value; the message lists the known or allowed
                values.
        """
        if not words or words[0] in ("-h", "--help"):
            width = max(map(len, self.within))
            print(f"usage: {prog} {'[-V] ' * (' ' not in prog)}COMMAND [options]\n\n{filled(self.about)}")
            for heading, group in self.groups.items():
                print(f"\n{heading}:")
                for name, command in group.items():
                    about = re.split("[;:]", command.about.partition("\n")[0])[0].rstrip(".")  # none under -OO
                    print(filled(f"{name:<{width}}  {about}", "  ", " " * (width + 4)))
            print(f"\n{filled(f'`{prog} COMMAND --help` describes a command and its options.')}")
            raise SystemExit(0)
        check(not words[0].startswith("-"), f"{prog} needs a command before {words[0]}; --help lists all")
        name = words[0].replace("_", "-")
        check(name in self.within, unknown_name("command", words[0], self.within))
        return self.within[name].read(words[1:], f"{prog} {name}")


def _import(modules: str = "") -> None:
    """Import modules of one's own.

    Args:
        import: Python module to import first, or several with commas, for the models, tasks, losses, generators,
            families, presets, metrics and automata that they register.
    """
    named = modules.split(",") if modules else []
    for name in named:
        import_own(name, "--import")
    NAMED.set((*NAMED.get(), *named))


def complete(*, shell: Annotated[str, OneOf(SHELLS), Shown("SHELL", positional=True)]) -> int:
    """Print a script by which a shell completes commands, options and names.

    Args:
        shell: the shell.
    """
    from maze_nca_gym.agents.automata import AUTOMATA  # here, as this builds all of them

    words: dict[str, list[str]] = {}
    flags: dict[str, dict[str, list[str]]] = {}
    shipped = {
        "POLICY": agents.list_policies(all=True),
        "FILE|NAME": [*list_prefabs(), *list_packs(), *BENCHMARK_SETS],
        "MODULE:NAME": AUTOMATA,
    }

    def names(option: Option) -> list[str]:
        by_kind = (known for kind, known in shipped.items() if kind in (option.style.metavar or ""))
        return names_of(option) or [name for known in by_kind for name in known]

    def add(path: str, command: Command | Commands) -> None:
        if isinstance(command, Commands):
            words[path] = [*command.within, *([] if path else ["help"])]
            for name, inner in command.within.items():
                add(f"{path} {name}".strip(), inner)
        else:
            further = further_options(command.function)
            options = {**({} if further is None else further.options_of({})), **command.options}
            words[path] = [name for option in options.values() if option.style.positional for name in names(option)]
            named = {flag(option.name): names(option) for option in options.values() if not option.style.positional}
            flags[path] = {**named, "--help": []}

    add("", COMMANDS)
    print(SHELLS[shell](words, flags), end="")
    return 0


COMMANDS = Commands(
    "Mazes in which each step is one iteration of a neural cellular automaton.",
    {
        "Run policies": {
            "solve": Command(solve.run, agents.solve, ("all-shortest-paths --n 1000", "--generator perfect --size 31")),
            "solve-large": Command(solve.run_large, agents.solve_large, ("--maze maze.npy --out runs/large",)),
            "play": Command(solve.run_window, agents.play, ("nca-shortest-path-healing",)),
            "evaluate": Command(
                evaluate.run,
                agents.evaluate,
                ("nca-shortest-path --families random,perfect", "mine=runs/mine/model.safetensors --n 1000"),
            ),
            "bench": Command(bench.run, agents.bench, ("maze-unique-30 --policies nca-shortest-path",)),
            "doubt": Command(doubt.run, agents.doubt, ("nca-shortest-path", "mine.safetensors --seconds 300")),
            "evolve": Command(evolve.run, agents.evolve, ("nca-shortest-path-small --n 1000",)),
            "export": Command(policies.run_export, agents.export, ("nca-shortest-path --out nca.html",)),
        },
        "Train networks": {
            "train": Command(train.run, agents.train, ("guided --out runs/mine", "fast --sizes 8,12 --n-updates 1000")),
            "sweep": Command(
                sweep.run, agents.sweep, ("examples/widths.toml", "examples/widths.toml --launcher slurm")
            ),
            "reproduce": Command(sweep.run_reproduce, agents.reproduce, ("--scale tiny --out runs/tiny",)),
            "runs": Commands(
                "List the runs in a folder.",
                {"Commands": {"list": Command(sweep.run_list, agents.list_runs, ("runs/sweep/widths --sort loss",))}},
            ),
        },
        "Compile and prove automata": {
            "compile-automaton": Command(automata.run_compile, agents.compile_automaton, ("life --out runs/life",)),
            "learn-automaton": Command(automata.run_learn, agents.learn_automaton, ("reachable",)),
            "check-proofs": Command(
                automata.run_check, agents.check_proofs, ("", "--automaton reachable", "runs/life/coq")
            ),
            "check-refutations": Command(
                automata.run_check_refutations, agents.check_refutations, ("queries --signatures cvc5/proofs/eo",)
            ),
        },
        "Show policies and levels": {
            "policies": Commands(
                "List and show the policies that come with the package.",
                {
                    "Commands": {
                        "list": Command(policies.list_them, examples=("--all",)),
                        "show": Command(policies.show, examples=("nca-shortest-path",)),
                    }
                },
            ),
            "levels": Commands(
                "List and show levels: named mazes, packs, files.",
                {
                    "Commands": {
                        "list": Command(levels.list_levels, examples=("--details", "runs/levels.npz")),
                        "show": Command(
                            levels.show_levels, examples=("Labyrinth --solution", "perfect-31 --index 0,1,2")
                        ),
                    }
                },
            ),
            "generate": Command(levels.run, agents.generate, ("runs/levels.npz --generator perfect --n 100",)),
            "completion": Command(complete, examples=("bash > ~/.maze-nca-gym.bash",)),
        },
    },
)
