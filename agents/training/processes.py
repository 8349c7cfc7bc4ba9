"""The processes that share a training, and what they exchange.

Every worker draws the same batch and takes its share, and the gradients are averaged. So k workers make the same
updates as one, up to rounding.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor

from maze_nca_gym.envs.backend_torch import find_device

from ..runs import number_in_environment


def usable_cores() -> int:
    """Return the number of CPU cores that this process may use, which can be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Workers:
    """The workers of a training that is a single process, with the methods of `FabricWorkers`."""

    rank = 0
    size = 1

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def average(self, tensors: Iterable[Tensor]) -> None:
        """Replace each float32 tensor, of any shape, by its mean over the workers, in place."""

    def gather(self, share: Tensor) -> Tensor:
        """Return the (n, ...) shares of all workers, concatenated by rank, (size n, ...)."""
        return share

    def any(self, flag: bool) -> bool:
        """Return whether the flag of any worker is set."""
        return flag


class FabricWorkers(Workers):
    """The processes that `torchrun` started, through Lightning Fabric."""

    def __init__(self, device: str) -> None:
        try:
            from lightning_fabric import Fabric
            from lightning_fabric.strategies.ddp import DDPStrategy
        except ImportError as error:
            raise ValueError(
                'training in several processes needs lightning-fabric: pip install "maze-nca-gym[train]"'
            ) from error
        accelerator, here = torch.device(device).type, number_in_environment("LOCAL_WORLD_SIZE")
        if accelerator != "cpu" and device != "cuda":
            raise ValueError(f"torchrun gives each process a GPU of its own: use --device cuda, not {device}")
        if accelerator == "cuda" and here > (n_gpus := torch.cuda.device_count()):
            raise ValueError(
                f"torchrun started {here} processes, but torch finds {n_gpus} GPUs here: use --nproc-per-node {n_gpus}"
            )
        n_nodes = number_in_environment("WORLD_SIZE") // here
        # the others wait for the first while it validates, which may take longer than the ten minutes of NCCL
        strategy = DDPStrategy(timeout=timedelta(weeks=1))
        self._fabric: Any = Fabric(accelerator=accelerator, devices=here, num_nodes=n_nodes, strategy=strategy)
        self._fabric.launch()
        self.rank, self.size = self._fabric.global_rank, self._fabric.world_size
        super().__init__(self._fabric.device)

    def average(self, tensors: Iterable[Tensor]) -> None:
        """Replace each float32 tensor, of any shape, by its mean over the workers, in place, by a single all-reduce."""
        tensors = list(tensors)
        flat = self._fabric.all_reduce(torch.cat([tensor.flatten() for tensor in tensors]), reduce_op="mean")
        for tensor, mean in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
            tensor.copy_(mean.view_as(tensor))

    def gather(self, share: Tensor) -> Tensor:
        """Return the (n, ...) shares of all workers, concatenated by rank, (size n, ...)."""
        shares = [torch.empty_like(share, memory_format=torch.contiguous_format) for _ in range(self.size)]
        torch.distributed.all_gather(shares, share.contiguous())  # Fabric's gather warns that it is out of date
        return torch.cat(shares)

    def any(self, flag: bool) -> bool:
        """Return whether the flag of any worker is set."""
        return bool(self._fabric.all_reduce(torch.tensor(float(flag), device=self.device), reduce_op="sum"))


def find_workers(device: str = "auto", float64_for: str = "") -> Workers:
    """Return the workers of a training: this process alone, or all processes that `torchrun` started.

    Args:
        device: auto (a CUDA GPU if there is one), or a name that `find_device` takes.
        float64_for: see `find_device`.

    Raises:
        ValueError: no such device, one without the float64 that is needed, or Lightning Fabric is needed and not
            installed.
        ValueError: more processes than GPUs on this machine, or one GPU by its number for several processes.
        ValueError: several processes were started, but not by `torchrun`: by `srun`, for example; or the environment
            variable with their number holds something else.
    """
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    own_device = find_device(device, float64_for)
    n_workers, n_here = number_in_environment("WORLD_SIZE"), number_in_environment("LOCAL_WORLD_SIZE", 0)
    if n_workers > 1 and not n_here:
        raise ValueError(f"WORLD_SIZE is {n_workers}, but this process was not started by torchrun; unset it")
    n_tasks = number_in_environment("SLURM_STEP_NUM_TASKS")
    if n_tasks > 1 and not n_here:  # each would train alone, all of them in the same folder
        raise ValueError(
            f"srun started {n_tasks} processes that do not know of each other: let it start one torchrun on each node "
            "(--ntasks-per-node 1), or one process"
        )
    return FabricWorkers(device) if n_workers > 1 else Workers(own_device)
