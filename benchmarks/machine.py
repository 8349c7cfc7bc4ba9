"""Describe the machine of a measurement, and restrict the process to one core."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = (
    "maze-nca-gym",
    "numpy",
    "numba",
    "torch",
    "gymnasium",
    "networkit",
    "igraph",
    "networkx",
    "scipy",
    "maze-dataset",
    "popgym",
    "jumanji",
    "jax",
    "minigrid",
)


def use_one_core() -> None:
    """Run everything on one core. Call this before peers are imported, because some peers count the cores only then."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    import torch

    torch.set_num_threads(1)


def describe() -> dict[str, Any]:
    """Return the CPU, the cores, the operating system, the load, and the versions of Python and of the packages.

    `load` is the mean number of running processes in the last minute, or None if the system does not report it. The
    version of a package that is not installed is None, and so is `commit` outside a clone.
    """
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "packages": {name: version_of(name) for name in PACKAGES},
        "commit": _commit(),
    }


def _commit() -> str | None:
    git = shutil.which("git")
    if git is None:
        return None
    command, folder = [git, "rev-parse", "--short=8", "HEAD"], Path(__file__).parent
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout.strip() or None


def _cpu() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"


def version_of(package: str) -> str | None:
    """Return the version of a package, or None if the package is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
