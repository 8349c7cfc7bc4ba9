"""Tensors on the simulated GPU report that device, and only `transfer` copies them to the CPU."""

from __future__ import annotations

import copy

import numpy as np
import torch
from simulated_gpu import GPU, SimulatedGpu
from simulated_gpu import gpu as gpu
from torch import nn

from maze_nca_gym.support.transfer import read_back, upload


def test_tensors_report_their_device(gpu: SimulatedGpu) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    there, here = upload(array, GPU), torch.from_numpy(array)
    assert (there.device, there.is_cuda, there.is_cpu) == (GPU, True, False)
    assert here.device.type == "cpu"
    made = [
        *(there + 1, there[0], there.view(3, 2), there.flatten().clone(), torch.zeros_like(there), there.new_zeros(3)),
        *(torch.zeros(2, device="cuda"), torch.arange(3, device=GPU), here.to("cuda"), here.cuda(), here.to(there)),
        *(torch.stack([there, there]), there.bfloat16(), *there.split(1), there.sum(), torch.where(there > 1, 0.0, 1)),
    ]
    assert {tensor.device for tensor in made} == {GPU}
    assert read_back(there).tolist() == array.tolist()
    assert read_back(here) is not None
    assert gpu.n_reads == 1
    array[:] = 9
    assert (here == 9).all()
    assert not read_back(there == 9).any(), "an upload is a copy"


def test_models_gradients_and_optimisers_follow(gpu: SimulatedGpu) -> None:
    model = nn.Linear(3, 2).to(GPU)
    other = copy.deepcopy(model)
    optimiser = torch.optim.Adam(model.parameters(), capturable=True)
    for _ in range(2):
        optimiser.zero_grad()
        model(torch.ones(4, 3, device=GPU)).square().sum().backward()
        optimiser.step()
    tensors = [*model.parameters(), *other.parameters(), *(parameter.grad for parameter in model.parameters())]
    tensors += [tensor for kept in optimiser.state.values() for tensor in kept.values()]
    assert {tensor.device for tensor in tensors} == {GPU}
    assert (read_back(model.weight) != read_back(other.weight)).any()
