"""A simulated GPU: every function of torch runs on the CPU, with tensors that report a GPU as their device.

So runs can follow the code for a GPU, and are compared with runs on the CPU, saved, and resumed. `fake_gpu_jobs`, whose
tensors have no values, detects operators that would fail or wait on a GPU.

The storage of a tensor determines its device: the CPU or `GPU`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from maze_nca_gym.support import transfer

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)


class SimulatedGpu(TorchFunctionMode):
    """A mode that runs all of torch within the block, with tensors on the CPU and on a simulated GPU.

    Attributes:
        n_reads: number of reads of `transfer` from the GPU.
    """

    def __init__(self) -> None:
        super().__init__()
        self.n_reads = 0
        self._storages: dict[int, Any] = {}  # kept alive, so that no new storage reuses an address

    def has(self, tensor: Tensor) -> bool:
        """Return whether a tensor is on the GPU."""
        with torch._C.DisableTorchFunction():
            return not tensor.is_meta and tensor.untyped_storage()._cdata in self._storages

    def mark(self, values: Any) -> Any:
        """Note that tensors are on the GPU, and return them."""
        with torch._C.DisableTorchFunction():
            for tensor in _tensors(values):
                storage = tensor.untyped_storage()
                self._storages[storage._cdata] = storage
        return values

    def read(self, tensor: Tensor) -> Tensor:
        """Replace the function with which `transfer` reads."""
        if self.has(tensor):
            self.n_reads += 1
        return tensor.cpu()

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs, name = dict(kwargs or {}), getattr(function, "__name__", "")
        if name in ("__get__", "__set__"):
            return self._property(function, name, args)
        if name == "pin_memory":
            return args[0]
        if function in (torch.Tensor.to, torch.Tensor.cpu, torch.Tensor.cuda):
            return self._moved(function, args, kwargs)
        if kwargs.get("device") is not None and torch.device(kwargs["device"]).type == "cuda":
            return self.mark(function(*args, **{**kwargs, "device": CPU}))
        is_there = kwargs.get("device") is None and any(map(self.has, _tensors([args, kwargs])))
        result = function(*args, **kwargs)
        return self.mark(result) if is_there else result

    def _property(self, function: Any, name: str, args: Any) -> Any:
        values = {"device": (GPU,), "is_cpu": (False,), "is_cuda": (True,)}
        if name == "__set__" or not self.has(args[0]):
            return function(*args)
        called = function.__self__.__name__
        return values[called][0] if called in values else self.mark(function(*args))

    def _moved(self, function: Any, args: Any, kwargs: dict[str, Any]) -> Tensor:
        tensor, arguments = args[0], args[1:]
        before, device, more = self.has(tensor), None, {}
        if function is torch.Tensor.to:
            if arguments and isinstance(arguments[0], Tensor):
                arguments, kwargs = (
                    (),
                    {**kwargs, "device": GPU if self.has(arguments[0]) else CPU, "dtype": arguments[0].dtype},
                )
            more = {key: kwargs.pop(key) for key in ("copy", "memory_format") if key in kwargs}
            device, dtype, _, _ = torch._C._nn._parse_to(*arguments, **kwargs)
            more |= {} if dtype is None else {"dtype": dtype}
        else:
            device = CPU if function is torch.Tensor.cpu else GPU
        after = before if device is None else device.type == "cuda"
        moved = torch.Tensor.to(tensor, **({**more, "copy": True} if before != after else more))
        return self.mark(moved) if after else moved


def _tensors(values: Any) -> Iterator[Tensor]:
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, dict):
        yield from _tensors(list(values.values()))
    elif isinstance(values, (list, tuple)):
        for value in values:
            yield from _tensors(value)


def tf32_allowed() -> set[bool]:
    """Return whether float32 convolutions and products of matrices on a GPU are computed in TF32."""
    cudnn: Any = torch.backends.cudnn
    if not hasattr(torch.backends, "fp32_precision"):  # before PyTorch 2.9
        return {cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32}
    return {part.fp32_precision == "tf32" for part in (cudnn.conv, torch.backends.cuda.matmul)}


class _GeneratorOnCpu(torch.Generator):
    """A generator for any device with the numbers of the CPU; a class, because annotations name it."""

    def __new__(cls, device: Any = "cpu") -> _GeneratorOnCpu:
        return super().__new__(cls)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimulatedGpu]:
    """A simulated GPU for the length of a test, on which autocast works as on the CPU."""
    mode, autocast = SimulatedGpu(), torch.autocast
    enabled, dtype = torch.is_autocast_enabled, torch.get_autocast_dtype
    monkeypatch.setattr(transfer, "_copied", mode.read)
    monkeypatch.setattr(torch, "autocast", lambda kind, *args, **more: autocast("cpu", *args, **more))
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda kind="cpu": enabled("cpu"))
    monkeypatch.setattr(torch, "get_autocast_dtype", lambda kind="cpu": dtype("cpu"))
    monkeypatch.setattr(torch.amp, "is_autocast_available", lambda kind: True)
    monkeypatch.setattr(torch, "Generator", _GeneratorOnCpu)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    if hasattr(torch, "accelerator"):  # a build with CUDA would count that GPU as real, and Adam ask for its stream
        monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available=False: None)
    with mode:
        yield mode
