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
    on_gpu, on_cpu = upload(array, GPU), torch.from_numpy(array)
    assert (on_gpu.device, on_gpu.is_cuda, on_gpu.is_cpu) == (GPU, True, False)
    assert on_cpu.device.type == "cpu"
    tensors = [
        *(
            on_gpu + 1,
            on_gpu[0],
            on_gpu.view(3, 2),
            on_gpu.flatten().clone(),
            torch.zeros_like(on_gpu),
            on_gpu.new_zeros(3),
        ),
        *(
            torch.zeros(2, device="cuda"),
            torch.arange(3, device=GPU),
            on_cpu.to("cuda"),
            on_cpu.cuda(),
            on_cpu.to(on_gpu),
        ),
        *(
            torch.stack([on_gpu, on_gpu]),
            on_gpu.bfloat16(),
            *on_gpu.split(1),
            on_gpu.sum(),
            torch.where(on_gpu > 1, 0.0, 1),
        ),
    ]
    assert {tensor.device for tensor in tensors} == {GPU}
    assert read_back(on_gpu).tolist() == array.tolist()
    assert read_back(on_cpu) is not None
    assert gpu.n_reads == 1
    array[:] = 9
    assert (on_cpu == 9).all()
    assert not read_back(on_gpu == 9).any(), "an upload is a copy"


def test_models_gradients_and_optimisers_follow(gpu: SimulatedGpu) -> None:
    model = nn.Linear(3, 2).to(GPU)
    other = copy.deepcopy(model)
    optimiser = torch.optim.Adam(model.parameters(), capturable=True)
    for _ in range(2):
        optimiser.zero_grad()
        model(torch.ones(4, 3, device=GPU)).square().sum().backward()
        optimiser.step()
    tensors = [*model.parameters(), *other.parameters(), *(parameter.grad for parameter in model.parameters())]
    tensors += [tensor for state in optimiser.state.values() for tensor in state.values()]
    assert {tensor.device for tensor in tensors} == {GPU}
    assert (read_back(model.weight) != read_back(other.weight)).any()
