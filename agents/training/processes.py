"""The processes (workers) that share a training, and the collective operations between them.

Every worker draws the same batch and computes the gradients of its share, and the gradients are averaged. Therefore, k
workers make the same updates as a single worker, up to rounding.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor

from maze_nca_gym.envs.backend_torch import find_device
from maze_nca_gym.support.doors import needing

from ..runs import number_in_environment


def usable_cores() -> int:
    """Return the number of CPU cores that this process may use. The machine may have more cores."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Workers:
    """The only worker of a training in a single process, and the base class of `FabricWorkers`.

    Attributes:
        rank: the number of this worker, from 0.
        size: the number of workers.
        device: the device of this worker.
    """

    rank = 0
    size = 1

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def average(self, tensors: Iterable[Tensor]) -> None:
        """Replace each float32 tensor, of any shape, by its mean over the workers, in place."""

    def gather(self, share: Tensor) -> Tensor:
        """Return the (n, ...) shares of all workers, concatenated in the order of ranks, (size n, ...)."""
        return share

    def any(self, flag: bool) -> bool:
        """Return whether the flag of any worker is set."""
        return flag


class FabricWorkers(Workers):
    """The processes that `torchrun` started, which communicate through Lightning Fabric."""

    def __init__(self, device: str) -> None:
        advice = 'training in several processes needs lightning-fabric: pip install "maze-nca-gym[train]"'
        with needing(advice, ValueError):
            from lightning_fabric import Fabric
            from lightning_fabric.strategies.ddp import DDPStrategy
        accelerator, here = torch.device(device).type, number_in_environment("LOCAL_WORLD_SIZE")
        if accelerator != "cpu" and device != "cuda":
            raise ValueError(f"torchrun gives each process its own GPU: use --device cuda, not {device}")
        if accelerator == "cuda" and here > (n_gpus := torch.cuda.device_count()):
            raise ValueError(
                f"torchrun started {here} processes, but torch finds {n_gpus} GPUs here: use --nproc-per-node {n_gpus}"
            )
        n_nodes = number_in_environment("WORLD_SIZE") // here
        # the other workers wait while the first worker validates, perhaps longer than NCCL's default of ten minutes
        strategy = DDPStrategy(timeout=timedelta(weeks=1))
        self._fabric: Any = Fabric(accelerator=accelerator, devices=here, num_nodes=n_nodes, strategy=strategy)
        self._fabric.launch()
        self.rank, self.size = self._fabric.global_rank, self._fabric.world_size
        super().__init__(self._fabric.device)

    def average(self, tensors: Iterable[Tensor]) -> None:
        """Replace each float32 tensor, of any shape, by its mean over the workers, in place, in a single all-reduce."""
        tensors = list(tensors)
        flat = self._fabric.all_reduce(torch.cat([tensor.flatten() for tensor in tensors]), reduce_op="mean")
        for tensor, mean in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
            tensor.copy_(mean.view_as(tensor))

    def gather(self, share: Tensor) -> Tensor:
        """Return the (n, ...) shares of all workers, concatenated in the order of ranks, (size n, ...)."""
        shares = [torch.empty_like(share, memory_format=torch.contiguous_format) for _ in range(self.size)]
        torch.distributed.all_gather(shares, share.contiguous())  # Fabric's `all_gather` raises deprecation warnings
        return torch.cat(shares)

    def any(self, flag: bool) -> bool:
        """Return whether the flag of any worker is set."""
        return bool(self._fabric.all_reduce(torch.tensor(float(flag), device=self.device), reduce_op="sum"))


def find_workers(device: str = "auto", float64_for: str = "") -> Workers:
    """Return the workers of a training: this process alone, or all processes that `torchrun` started.

    Args:
        device: auto (a CUDA GPU if the machine has a GPU), or a name that `find_device` accepts.
        float64_for: the option that needs float64, as for `find_device`.

    Raises:
        ValueError: there is no such device, or the device lacks the float64 that is needed, or Lightning Fabric is
            needed and not installed.
        ValueError: there are more processes than GPUs on this machine, or the device is a single GPU, such as cuda:1,
            for several processes.
        ValueError: several processes were started, but not by `torchrun` (for example by `srun`), or an environment
            variable with the number of processes is not a number.
    """
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    own_device = find_device(device, float64_for)
    n_workers, n_here = number_in_environment("WORLD_SIZE"), number_in_environment("LOCAL_WORLD_SIZE", 0)
    if n_workers > 1 and not n_here:
        raise ValueError(f"WORLD_SIZE is {n_workers}, but this process was not started by torchrun; unset it")
    n_tasks = number_in_environment("SLURM_STEP_NUM_TASKS")
    if n_tasks > 1 and not n_here:  # each process would train alone, and all of them would write to the same folder
        raise ValueError(
            f"srun started {n_tasks} processes that do not know of each other: let it start one torchrun on each node "
            "(--ntasks-per-node 1), or one process"
        )
    return FabricWorkers(device) if n_workers > 1 else Workers(own_device)
