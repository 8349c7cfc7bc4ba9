"""Measure the fastest settings of a GPU in at most ten minutes, print them as a table, and write them to a folder.

Updates and rollouts of networks run eagerly, through torch.compile, and as CUDA graphs, in both memory formats and in
float32, TF32 and bfloat16. Steps of environments are timed without restarts.
"""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from time import monotonic, perf_counter

import torch

from maze_nca_gym.agents.policies.learned import NCA
from maze_nca_gym.agents.policies.policy import EngineHints
from maze_nca_gym.agents.policies.precision import tf32
from maze_nca_gym.agents.rollouts.cuda_graphs import CudaGraphs
from maze_nca_gym.agents.rollouts.engines import PYTORCH
from maze_nca_gym.agents.rollouts.pytorch import RolloutRequest
from maze_nca_gym.cli.reading import run_script
from maze_nca_gym.envs.vector import MazeVectorEnv
from maze_nca_gym.support.files import write_all
from maze_nca_gym.support.tables import Table

from . import machine
from .report import duration
from .training import Setting, counted_iterations, loss, problem

WAYS = {
    "eager": "--compile False",
    "graphs": "--compile graphs",
    "compiled": "--compile True",
}
FORMATS = {"channels last": torch.channels_last, "contiguous": torch.contiguous_format}
PRECISIONS = ("tf32", "bfloat16", "float32")
"""Precisions, the most important first, because the time may be over before the last lines."""
ORDER = [(way, memory) for ways in (("eager", "graphs"), ("compiled",)) for memory in FORMATS for way in ways]
"""(way, memory format), the most important first. torch.compile comes last because it compiles for minutes."""
ENOUGH = 1.1
"""Smallest factor by which a setting must be faster than the default to be recommended."""


@dataclass(frozen=True)
class Arguments:
    """Options of the command."""

    device: str = "cuda"
    """Device: cuda, cuda:1 ... A CPU has no graphs and runs eagerly instead."""
    quick: bool = False
    """Measure only the smallest networks, mazes and numbers of environments."""
    seconds: float = 540.0
    """Time after which no further line starts."""
    out: Path = Path("runs/gpu")
    """Folder for gpu.json and GPU.md."""


@dataclass(frozen=True)
class Line:
    """The time of a job in one way. If it was not measured, `seconds` is None and `note` is the reason."""

    job: str
    precision: str = ""
    way: str = ""
    memory_format: str = ""
    seconds: float | None = None
    note: str = ""


class Network(NCA):
    """An NCA that PyTorch iterates in a chosen memory format."""

    memory_format = torch.channels_last

    @property
    def engine_hints(self) -> EngineHints:  # type: ignore[override]
        """The hints of an NCA, with the chosen memory format."""
        return replace(super().engine_hints, memory_format=self.memory_format)


def main(arguments: list[str] | None = None) -> int:
    """Measure, and return the exit status: 1 if a line failed, 2 without the device.

    The files are written again after every line, so that an interrupted run leaves its measurements.

    Args:
        arguments: the command line without the program; by default that of this process.
    """
    options = run_script(Arguments, __doc__, arguments)
    if options.device != "cpu" and not torch.cuda.is_available():
        print(f"PyTorch finds no GPU for {options.device}; --device cpu --quick runs a miniature.", file=sys.stderr)
        return 2
    start, device, lines = monotonic(), torch.device(options.device), list[Line]()
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else machine.describe()["cpu"]
    description = f"{name}; Python {platform.python_version()}, PyTorch {machine.version_of('torch')}"
    options.out.mkdir(parents=True, exist_ok=True)
    paths = [options.out / "gpu.json", options.out / "GPU.md"]
    for line, run_of in jobs(device, options.quick):
        note, seconds = "no time was left", None
        if monotonic() - start < options.seconds:
            try:
                torch._dynamo.reset()  # otherwise PyTorch compiles a function for a few networks only
                note, seconds = "", seconds_of(run_of(), device, options.quick)
            except Exception as error:  # drivers and compilers raise many errors, but the other lines still count
                note = f"failed: {type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
        lines.append(replace(line, seconds=seconds, note=note))
        print("  ".join(filter(None, cells(lines[-1]))), flush=True)
        record = json.dumps({"machine": description, "lines": [asdict(line) for line in lines]}, indent=1) + "\n"
        tables = f"{advice(lines).markdown()}\n\n{Table(HEADER, list(map(cells, lines)), HEADER[-2:-1]).markdown()}"
        text = f"# Results of `python -m benchmarks.gpu`\n\n{description}. Times are medians.\n\n{tables}\n"
        write_all(dict(zip(paths, (record.encode(), text.encode()), strict=True)))
    advice(lines).print(None if sys.stdout.isatty() else 140)
    print(*paths, sep="\n")
    return int(any(line.note.startswith("failed") for line in lines))


def jobs(device: torch.device, quick: bool) -> Iterator[tuple[Line, Callable[[], Callable[[], object]]]]:
    """Yield every line without its time, and a function that prepares and returns the function to time."""
    for n_envs in (2, 4) if quick else (1024, 4096, 16384, 65536):
        yield Line(f"a step of {n_envs:,} environments"), partial(environments, device, n_envs)
    scale, n, size = (0.04, 2, 3) if quick else (1.0, 64, 16)
    few, channels, many, more = (max(3, round(size_in_full * scale)) for size_in_full in (32, 32, 64, 96))
    small = Setting({"n_channels": channels, "cut_corners": True, "n_iterations": few}, few, n, size)
    large = Setting({"n_channels": more, "n_iterations": None}, many, n, size)
    networks = {
        f"an update, 5 taps, {channels} channels, {few} steps": (small, True),
        f"an update, 9 taps, {more} channels, {many} steps": (large, True),
        f"a rollout, 9 taps, {more} channels, {many} steps": (large, False),
    }
    for way, memory in ORDER:
        for precision in PRECISIONS:
            for job, (setting, learns) in networks.items():
                prepare = partial(_network, device, setting, learns, precision, way, memory)
                yield Line(f"{job}, {n} mazes of {size}x{size}", precision, way, memory), prepare


def environments(device: torch.device, n_envs: int) -> Callable[[], object]:
    """Return a step of environments that never restart: the action solves no maze, and episodes have no time limit."""
    envs = MazeVectorEnv(n_envs, "shortest-path", max_episode_steps=None, device=str(device), output="torch")
    envs.reset(seed=0)
    generator = torch.Generator(device).manual_seed(0)
    action = torch.rand(envs.action_space.shape or (), generator=generator, device=device)
    return lambda: envs.step(action)


def _network(
    device: torch.device, setting: Setting, learns: bool, precision: str, way: str, memory: str
) -> Callable[[], object]:
    """Return an update or a rollout, as training and `solve` run them on a GPU."""
    initial, maze, target = (part.to(device) for part in problem(setting))
    nca = Network(4, **setting.network).to(device)
    nca.load_state_dict(initial.state_dict())
    nca.memory_format = FORMATS[memory]
    if way == "compiled":
        nca.compile()
    engine = CudaGraphs(nca) if way == "graphs" and device.type == "cuda" else PYTORCH
    keep = tuple(sorted(filter(None, counted_iterations(setting.n_steps)))) if learns else (setting.n_steps,)

    def run() -> None:
        nca.zero_grad()
        autocast = torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16")
        with torch.set_grad_enabled(learns), tf32(precision == "tf32", device):
            with autocast:
                states = engine(nca, maze, None, RolloutRequest(keep, n_returned=1))
                error = loss(states, target)
            if learns:
                error.backward()  # type: ignore[no-untyped-call]

    return run


def seconds_of(run: Callable[[], object], device: torch.device, quick: bool) -> float:
    """Return the median seconds of a run, from samples of a tenth of a second, after runs that compile and record."""
    samples, least_seconds, warm_ups = (1, 0.0, 1) if quick else (5, 0.1, 5)
    wait = partial(torch.cuda.synchronize, device) if device.type == "cuda" else lambda: None
    for _ in range(warm_ups):
        run()
    n_runs, times = 1, list[float]()
    while len(times) < samples:
        wait()
        start = perf_counter()
        for _ in range(n_runs):
            run()
        wait()
        elapsed = perf_counter() - start
        if elapsed >= least_seconds:
            times.append(elapsed / n_runs)
        else:
            n_runs *= 2
    return median(times)


HEADER = ("job", "precision", "way", "memory", "time", "note")


def cells(line: Line) -> tuple[str, ...]:
    """Return the texts of a line for the columns of `HEADER`."""
    seconds = "" if line.seconds is None else duration(line.seconds)
    return line.job, line.precision, line.way, line.memory_format, seconds, line.note


def advice(lines: list[Line]) -> Table:
    """Return the recommended setting for each job and precision: the fastest, or the default if it is nearly as fast.

    `ENOUGH` is the factor that decides. A row also lists the ways that were not measured.
    """
    default, rows = (next(iter(WAYS)), next(iter(FORMATS))), []
    for job, precision in dict.fromkeys((line.job, line.precision) for line in lines if line.precision):
        times = {
            (line.way, line.memory_format): line.seconds
            for line in lines
            if (line.job, line.precision) == (job, precision) and line.seconds is not None
        }
        if default not in times:
            continue
        way, memory = best = min(times, key=times.__getitem__)
        factor = times[default] / times[best]
        settings = [f"{WAYS[way]}, {memory}"] if factor >= ENOUGH else []
        unmeasured = {way: [memory for memory in FORMATS if (way, memory) not in times] for way in WAYS}
        missing = [
            way if set(formats) == set(FORMATS) else f"{way} {formats[0]}"
            for way, formats in unmeasured.items()
            if formats
        ]
        if missing:
            settings.append(f"not measured: {', '.join(missing)}")
        advised = "; ".join(settings) or "nothing: the default is as fast"
        rows.append((job, precision, duration(times[default]), duration(times[best]), f"{factor:.2f}", advised))
    return Table(("job", "precision", "default", "fastest", "times as fast", "set"), rows)


if __name__ == "__main__":
    sys.exit(main())
