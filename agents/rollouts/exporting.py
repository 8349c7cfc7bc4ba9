"""Policies as files that other programs run: one iteration, from a maze and a state to the next state.

- `json`: the weights, and the name of the activations, which the page `docs/play` runs in a browser: drop a file on it.
- `html`: that page as one file, with this policy alone.
- `torchscript`: a module for `torch.jit.load`, which needs no package except torch.
- `onnx`: a graph for onnxruntime and other programs, if PyTorch's exporter can express the policy.

The last two formats take (B, T, H, W) float32 mazes and (B, C, H, W) float32 states of any batch size, height and
width. The exported iteration is used at every step and always has the ReLU, although some networks have no ReLU in the
last iteration of an episode.
"""

from __future__ import annotations

import copy
import io
import json
import logging
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast

import numpy as np

from maze_nca_gym.mazes.levels import to_text
from maze_nca_gym.support.doors import needing
from maze_nca_gym.support.files import path_of_format, write_file
from maze_nca_gym.support.options import OneOf, Shown, Stored, check, checked
from maze_nca_gym.support.random_streams import rng_for

from ..policies.registry import MODEL_FILE, list_policies, named_policy
from ..runs import check_folder

if TYPE_CHECKING:
    from torch import Tensor, nn

    from ..policies.policy import Policy

KIND = "maze_nca_gym automaton 2"
"""Value of `format` in JSON files."""
PAGE = Path(__file__).parents[1] / "page"
"""The folder of the page. In a clone it is docs/play, and installations contain a copy."""
if not PAGE.exists():
    PAGE = Path(__file__).resolve().parents[2] / "docs" / "play"
_SIZES, _LEVELS_OF_SIZE = (8, 12, 16), 8
"""Inner sizes of the levels in JSON files, and the number of levels of each."""


class Format(NamedTuple):
    """A kind of file.

    Attributes:
        suffix: end of the file's name.
        needs: the policies that the format can store, in words.
        holds: a function that returns whether the format can store a policy.
        content: a function of a policy and a name that returns the content of the file.
    """

    suffix: str
    needs: str
    holds: Callable[[Policy], bool]
    content: Callable[[Policy, str], bytes]


def to_json(policy: Policy, name: str) -> bytes:
    """Return a policy as JSON.

    - `taps` are [rows down, columns to the right] of the tiles that are read.
    - `weights` contains for each state channel a list for each input and each state channel, with a number for each of
      `taps`. Numbers are the shortest that read back as the same float32.
    - `kinds` are the task's kinds of tile.
    - `levels` contains generated levels and their canonical answers: for each channel a list of the answer's tiles,
      numbered row by row. Only tasks with answers that the page cannot judge have `levels`.

    Args:
        policy: a policy for which `is_convolution` is true.
        name: the policy's name in the file.
    """
    # the taps that have a non-zero weight, of all state channels
    from ..policies.policy import program_of  # here, since the options of `export` are known without torch

    program, task = program_of(policy), policy.problem
    assert program is not None, "`is_convolution` is asked before"
    kernel = program.kernel.detach()
    live = kernel.abs().sum(dim=(0, 1)).nonzero()
    content: dict[str, Any] = {
        "format": KIND,
        "name": name,
        "task": policy.task,
        "found": task.found,
        "answers": task.answers,
        "kinds": [asdict(kind) for kind in task.kinds],
        "output": policy.output,
        "exact": policy.guarantees.exact,
        "bound": policy.guarantees.to_json()["bound"],
        "iterations": getattr(policy, "n_iterations", None),
        "needs_border": policy.guarantees.needs_border,
        "rule": program.activation,
        "state_limit": program.state_limit,
        # the number of maxima over the map, if it is not one
        "max_pool": program.n_maxima if program.n_maxima > 1 else program.max_pool,
        "inputs": program.inputs,
        "channels": policy.channel_names,
        "highlight": policy.highlight,
        # the taps that have a non-zero weight, and the weights at these
        "taps": (live - kernel.shape[-1] // 2).tolist(),
        "bias": _short(program.bias.detach()),
        "weights": _short(kernel[:, :, live[:, 0], live[:, 1]]),
    }
    # the page cannot solve such a task, so it gets levels with their answers
    if task.judge:
        rng = rng_for(0, "page")
        content["levels"] = [
            {
                "level": to_text(tiles, letters=task.letters),
                "answer": [np.flatnonzero(path).tolist() for path in answer.reshape(-1, *tiles.shape)],
            }
            for levels in (task.generate(rng, _LEVELS_OF_SIZE, size) for size in _SIZES)
            for tiles, answer in zip(levels, task.solve_all(levels), strict=True)
        ]
    # a line for each key, so that differences can be read
    lines = ",\n".join(
        f"{json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}" for key, value in content.items()
    )
    return f"{{\n{lines}\n}}\n".encode()


def to_script(policy: Policy, name: str) -> bytes:
    """Return a policy as a JavaScript file that the page `docs/play` loads.

    The page does not load JSON files, because a browser may refuse to read them from a disk.
    """
    return b"MazePlay.addPolicy(" + to_json(policy, name).rstrip().replace(b"<", rb"\u003c") + b");\n"


def to_list(rows: Sequence[tuple[str, str, str]]) -> bytes:
    """Return the list of policies of the page `docs/play` as a JavaScript file.

    Args:
        rows: name, task and description of each policy.
    """
    keys = ("name", "task", "about")
    listed = ",\n".join(f"  {json.dumps(dict(zip(keys, row, strict=True)))}" for row in rows).replace("<", r"\u003c")
    return f"MazePlay.policies = [\n{listed}\n];\n".encode()


def to_html(policy: Policy, name: str) -> bytes:
    """Return the page `docs/play` as a single HTML file that contains one policy, under a name."""
    info = list_policies(all=True).get(name)
    own = to_list([(name, policy.task, info.description if info else "")]) + to_script(policy, name)

    def content(path: str) -> str:
        return (own if path == "policies/list.js" else (PAGE / path).read_bytes()).decode()

    page = re.sub(" *<a .*</a>\n", "", (PAGE / "index.html").read_text(encoding="utf-8"))  # no other page is beside it
    page = re.sub('<link rel="stylesheet" href="(.*)">', lambda link: f"<style>\n{content(link[1])}</style>", page)
    return re.sub('(<script) src="(.*)">', lambda tag: f"{tag[1]}>\n{content(tag[2])}", page).encode()


def _short(values: Tensor) -> Any:
    """Return nested lists of numbers with the fewest digits that identify a float32; whole numbers are integers."""
    if values.ndim:
        return [_short(value) for value in values]
    number = float(str(np.float32(values.item())))
    return int(number) if number.is_integer() else number


def _iteration(policy: Policy) -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    """Return an iteration as a module of two arguments, and sample arguments: mazes and states of an arbitrary size."""
    import torch

    from ..policies.policy import must_be_called, stationary_from

    class Iteration(torch.nn.Module):  # here, since the options of `export` are known without torch
        def __init__(self) -> None:
            super().__init__()
            self.policy = copy.deepcopy(policy)
            if hasattr(policy, "sum_dtype"):  # many runtimes have no float64 convolution
                setattr(self.policy, "sum_dtype", torch.float32)  # noqa: B010 - no attribute of every policy
            self.step, self.called = stationary_from(policy) or 0, must_be_called(policy)

        def forward(self, maze: Tensor, state: Tensor) -> Tensor:
            if self.called:
                return cast("Tensor", self.policy(maze, state, self.step))
            return self.policy.update(self.policy.encode_maze(maze), state, self.step)

    module = Iteration().eval()
    shapes = (2, policy.n_tiles, 7, 9), (2, policy.n_channels, 7, 9)
    maze, state = (torch.zeros(shape, dtype=torch.float32) for shape in shapes)
    return module, (maze, state)


@contextmanager
def _quietly() -> Iterator[None]:
    """Hide the warnings and log messages of PyTorch's exporters."""
    level = logging.root.manager.disable
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(level)


def to_torchscript(policy: Policy, name: str) -> bytes:
    """Return a policy as a TorchScript module, which is called as `next = module(maze, state)`."""
    import torch

    (module, sample), buffer = _iteration(policy), io.BytesIO()
    with _quietly():
        torch.jit.save(torch.jit.trace(module, sample, check_trace=False), buffer)
    return buffer.getvalue()


def to_onnx(policy: Policy, name: str) -> bytes:
    """Return a policy as an ONNX graph with the inputs `maze` and `state` and the output `next`.

    Raises:
        DependencyNotInstalled: onnx or onnxscript is missing.
        ValueError: PyTorch's exporter cannot make a graph of the policy, for example because operations depend on
            values.
    """
    with needing("onnx files need the packages of maze-nca-gym[onnx]"):
        import onnxscript  # noqa: F401 # PyTorch's exporter imports it
    import torch

    module, sample = _iteration(policy)
    free = dict.fromkeys((0, 2, 3), torch.export.Dim.DYNAMIC)
    with _quietly():
        try:
            program = torch.onnx.export(
                module,
                sample,
                input_names=["maze", "state"],
                output_names=["next"],
                dynamo=True,
                dynamic_shapes=(free, free),
                verbose=False,
            )
        except torch.onnx.errors.OnnxExporterError as error:
            reason = str(error.__cause__ or error).strip().partition("\n")[0]
            raise ValueError(f"PyTorch makes no ONNX graph of {name}: {reason}") from error
    assert program is not None
    return bytes(program.model_proto.SerializeToString())


def is_convolution(policy: Policy) -> bool:
    """Return whether every iteration is the same convolution, followed by activations with a name."""
    from ..policies.policy import program_of

    program = program_of(policy)
    return program is not None and program.sees_inputs and not program.pool_before_activation


def stays_the_same(policy: Policy) -> bool:
    """Return whether every iteration is the same function on mazes of any size, in one pass of a network.

    The last iteration may differ from the others by having no ReLU.
    """
    from ..policies.policy import program_of, stationary_from

    program = program_of(policy)
    is_same = stationary_from(policy) == 0 or (program is not None and program.sees_inputs)
    return is_same and policy.size is None and policy.engine_hints.passes == 1


_CONVOLUTIONS = "convolutions with known activations, the same at every iteration"
_SAME = "policies for every size that do the same at every iteration, in one pass of a network"
FORMATS = {
    "json": Format(".json", _CONVOLUTIONS, is_convolution, to_json),
    "html": Format(".html", _CONVOLUTIONS, is_convolution, to_html),
    "torchscript": Format(".pt", _SAME, stays_the_same, to_torchscript),
    "onnx": Format(".onnx", _SAME, stays_the_same, to_onnx),
}
"""Kinds of file by name."""


@checked
def export(
    policy: Annotated[str | Path | Policy, Stored(str), Shown("POLICY", positional=True)],
    out: Annotated[str | Path | None, Shown("FILE")] = None,
    format: Annotated[str | None, OneOf(FORMATS)] = None,
    *,
    name: Annotated[str | None, Shown("NAME")] = None,
) -> Path:
    """Write one iteration of a policy to a file that runs without this package.

    A json file contains weights and the name of the activations; dropped on the page in docs/play, it runs there. An
    html file is this page with the policy, for any browser. A torchscript file is for torch.jit.load. An onnx file is
    for onnxruntime, and needs maze-nca-gym[onnx].

    >>> export("nca-shortest-path", "nca.onnx")

    Args:
        policy: name from `policies list`, a model file (*.safetensors), or module:class. In Python also a policy on the
            CPU.
        out: file to write; the format's suffix is added if missing. A file that exists is replaced. By default the file
            has the policy's name, and is in the current folder.
        format: format of the file; by default it follows from the suffix, .json, .html, .pt or .onnx, and is json
            without a suffix.
        name: the policy's name in the file; by default the name that was given for `policy`, or else its class name.

    Returns:
        The file's path.

    Raises:
        ValueError: an unknown policy or format, a format that cannot store the policy (the message names the formats
            that can), a folder that is not writable, a file with the suffix of another format, or a name that is a path
            although no file is given.
        DependencyNotInstalled: the format needs packages that are not installed.
        OSError: the file could not be written.
    """
    label, model = named_policy(policy)
    name = (Path(label).stem if label.lower().endswith(MODEL_FILE) else label) if name is None else name
    if out is None:
        is_name = name.isprintable() and not {*name} & {*"/\\"} and name not in ("", ".", "..")
        check(is_name, f"name must be the name of a file in the current folder if out is not given, got {name!r}")
    formats = FORMATS if format is None else {format: FORMATS[format]}
    kinds = {form.suffix: kind for kind, form in formats.items()}
    path = Path(name + next(iter(kinds))) if out is None else path_of_format(out, *kinds)
    kind = kinds[path.suffix.lower()]
    chosen = FORMATS[kind]
    if not chosen.holds(model):
        others = " or ".join(other for other, form in FORMATS.items() if form.holds(model))
        wrong = f"{kind} is for {chosen.needs}, which {name} is not; {others or 'no other format'} can store it"
        if model.size is None and model.engine_hints.passes == 1 and not stays_the_same(model):
            wrong += ". If all its iterations are the same function, say so in its class: stationary_from = 0"
        raise ValueError(wrong)
    check_folder("the folder of --out", path.parent)
    return write_file(path, chosen.content(model, name))
