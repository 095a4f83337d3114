import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from subnorm.experiments import gradients
from subnorm.experiments.stack import Stack, draw_weights, random_tokens


def test_log_slopes_of_power_laws() -> None:
    depths = (1, 2, 4, 8)
    sizes = np.array([[3 * depth**p for depth in depths] for p in (0.0, -0.5, 2.0)])
    np.testing.assert_allclose(gradients.log_slopes(depths, sizes), [0, -0.5, 2], atol=1e-12)


@pytest.mark.parametrize("placement", ["pre", "post"])
@pytest.mark.parametrize("depth", [1, 3])
def test_the_short_cut_gives_the_gradient_of_the_whole_stack(placement: str, depth: int) -> None:
    measured = gradients.last_layer(placement, (depth,), range(5, 6))

    generator = torch.Generator().manual_seed(5)
    x = random_tokens(generator, batch_size=gradients.SEQUENCES)
    stack, head = Stack(depth, placement, generator), nn.Linear(64, gradients.CLASSES, dtype=x.dtype)
    draw_weights(head, generator)
    target = torch.randint(gradients.CLASSES, (gradients.SEQUENCES, 32), generator=generator)
    logits = head(stack(x))
    weight = stack.blocks[-1].feed_forward.linear2.weight

    (average,) = torch.autograd.grad(F.cross_entropy(logits.flatten(0, 1), target.flatten()), weight, retain_graph=True)
    assert measured["average"][0, 0] == pytest.approx(float(average.norm()), rel=1e-4)
    squares = [
        float(torch.autograd.grad(F.cross_entropy(logits[b, -1:], target[b, -1:]), weight, retain_graph=True)[0].norm())
        ** 2
        for b in range(gradients.SEQUENCES)
    ]
    assert measured["one_token"][0, 0] == pytest.approx(np.sqrt(np.mean(squares)), rel=1e-4)
