"""`maze-nca-gym export`: a policy as a file for other programs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from maze_nca_gym.cli.options import ImportOption
from maze_nca_gym.options import OneOf, Shown, check_options

FORMATS = ("json", "torchscript", "onnx")
BY_SUFFIX = "that of the suffix of --out, .json, .pt or .onnx; else json"


@dataclass(frozen=True)
class Export(ImportOption):
    """Write one iteration of a policy to a file that runs without this package.

    A json file holds weights and the name of the activations, as the page in docs/play runs them. A torchscript file is
    for torch.jit.load. An onnx file is for onnxruntime, and needs maze-nca-gym[onnx].
    """

    policy: Annotated[str, Shown("POLICY", positional=True)]
    """Name from `policies list`, or a model file (*.safetensors)."""
    kind: Annotated[str | None, OneOf(FORMATS), Shown(default=BY_SUFFIX, name="format")] = None
    """Format of the file."""
    out: Annotated[Path | None, Shown("FILE", default="the policy's name, in the current folder")] = None
    """File to write; the format's suffix is added if missing. A file that exists is replaced."""

    def __post_init__(self) -> None:
        check_options(self)

    def run(self) -> int:
        """Write the file and return the exit code.

        Raises:
            ValueError: an unknown policy or format, or a format that cannot hold the policy.
            OSError: the file could not be written.
        """
        self.import_module()
        from maze_nca_gym.agents.export import export
        from maze_nca_gym.agents.registry import load

        name = Path(self.policy).stem if self.policy.endswith(".safetensors") else self.policy
        path = export(load(self.policy), Path(name) if self.out is None else self.out, self.kind, name)
        print(f"{path}: {path.stat().st_size / 1024:,.0f} KiB")
        return 0
