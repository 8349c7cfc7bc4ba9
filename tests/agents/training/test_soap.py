from __future__ import annotations

import torch
from tables import for_each
from torch import Tensor
from torch.optim import Adam

from maze_nca_gym.agents.training.optimisers import LARGEST_SIDE, SOAP, TURN_EVERY, soap_tensors

N_STEPS = 3 * TURN_EVERY


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def rotation(n: int, seed: int) -> Tensor:
    return torch.linalg.qr(random(n, n, seed=seed))[0]


def path(start: Tensor, gradient_of, **options) -> list[Tensor]:
    """Return the weights after each step of SOAP."""
    weight = start.clone().requires_grad_()
    optimiser, weights = SOAP([weight], lr=0.01, **options), []
    for _ in range(N_STEPS):
        weight.grad = gradient_of(weight.detach())
        optimiser.step()
        weights.append(weight.detach().clone())
    return weights


def test_rotated_problems_have_rotated_solutions():
    """Steps of SOAP do not depend on the coordinates, unlike Adam's steps."""
    start, solution, scales = random(4, 4), random(4, 4, seed=1), random(4, 4, seed=2).abs()
    left, right = rotation(4, 3), rotation(4, 4)

    def gradient(weight: Tensor) -> Tensor:
        return scales @ (weight - solution) @ scales

    plain = path(start, gradient)
    turned = path(left @ start @ right, lambda weight: left @ gradient(left.T @ weight @ right.T) @ right)
    for plain_weight, turned_weight in zip(plain, turned, strict=True):
        torch.testing.assert_close(left @ plain_weight @ right, turned_weight, rtol=0, atol=1e-6)


def test_bases_turn_at_first_and_then_at_intervals():
    weight, turned, before = torch.zeros(4, 6, requires_grad=True), [], None
    optimiser = SOAP([weight], lr=0.01)
    for number in range(1, N_STEPS + 1):
        weight.grad = random(4, 6, seed=number).float()
        optimiser.step()
        bases = [optimiser.state[weight][f"{side}_basis"] for side in ("left", "right")]
        if before is None or not any(map(torch.equal, bases, before)):
            turned.append(number)
        before = bases
    assert turned == [1, *range(TURN_EVERY, N_STEPS + 1, TURN_EVERY)]


def test_vectors_get_steps_of_adam():
    start, solution = random(6), random(6, seed=1)
    weight = start.clone().requires_grad_()
    optimiser = Adam([weight], lr=0.01, betas=(0.9, 0.9))
    for expected in path(start, lambda weight: weight - solution, decay=0.9):
        weight.grad = weight.detach() - solution
        optimiser.step()
        torch.testing.assert_close(weight.detach(), expected, rtol=0, atol=1e-9)


def test_it_needs_fewer_steps_than_adam_where_inputs_are_correlated():
    """In a linear layer, the variance of the inputs differs by a factor of a thousand between directions."""
    inputs = random(256, 12) * torch.logspace(0, -1.5, 12, dtype=torch.float64) @ rotation(12, 5)
    targets = inputs @ random(12, 8, seed=6)

    def loss_after(make) -> float:
        weight = torch.zeros(8, 12, dtype=torch.float64, requires_grad=True)
        optimiser = make([weight])
        for _ in range(400):
            loss = (inputs @ weight.T - targets).square().mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        return loss.item()

    assert loss_after(lambda weights: SOAP(weights, lr=0.02)) < 0.2 * min(
        loss_after(lambda weights, rate=rate: Adam(weights, lr=rate)) for rate in (0.005, 0.02, 0.08)
    )


@for_each("shape", [(3, 4, 5), (2, LARGEST_SIDE + 1), (LARGEST_SIDE + 1, 2)])
def test_sides_that_are_too_large_do_not_turn(shape):
    tensors = soap_tensors(torch.zeros(shape))
    rows, columns = shape[0], torch.Size(shape[1:]).numel()
    assert tensors["exp_avg"].shape == (rows, columns)
    assert ("left_basis" in tensors, "right_basis" in tensors) == (rows <= LARGEST_SIDE, columns <= LARGEST_SIDE)
    weight = torch.zeros(shape, requires_grad=True)
    weight.grad = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    SOAP([weight], lr=0.01).step()
    assert weight.isfinite().all()
    assert weight.count_nonzero() == weight.numel()


@for_each("gradient", [None, torch.zeros(2, 3)])
def test_without_a_gradient_or_with_zeros_weights_stay(gradient):
    weight = torch.ones(2, 3, requires_grad=True)
    optimiser = SOAP([weight], lr=0.01)
    for _ in range(N_STEPS):
        weight.grad = gradient
        optimiser.step()
    assert (weight == 1).all()
    assert bool(optimiser.state[weight]) == (gradient is not None)


def test_a_layer_with_one_output_and_small_gradients():
    generator = torch.Generator().manual_seed(0)
    for _ in range(200):  # in float32, LAPACK fails for about one in twenty of these matrices of moments
        weight = torch.zeros(1, 64, requires_grad=True)
        size = 10 ** -torch.rand(1, generator=generator).mul(9)
        weight.grad = torch.randn(1, 64, generator=generator) * size * (torch.rand(1, 64, generator=generator) < 0.5)
        SOAP([weight], lr=0.01).step()
        assert weight.isfinite().all()
        assert weight.abs().sum() > 0
