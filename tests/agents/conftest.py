from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from maze_nca_gym.agents import geometric as _geometric  # noqa: F401 - imported elsewhere first, torch_geometric warns


@pytest.fixture(autouse=True, scope="package")
def _one_thread() -> Iterator[None]:
    """Mazes are too small for threads to pay, and waiting for one another they are slow on a busy machine."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)
