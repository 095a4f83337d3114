"""The first module with a number that is not finite is found by its name, in PyTorch's models and in ours."""

import pytest
import torch
from torch import Tensor, nn

import subnorm.torch as st

X = torch.ones(2, 5, 16) + torch.arange(16)


def theirs() -> nn.Module:
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), 3, enable_nested_tensor=False)


def ours() -> nn.Module:
    return nn.Sequential(*(st.TransformerBlock(16, 4, 32) for _ in range(3)))


PLANTED = {
    "layers.1.linear1": theirs,
    "layers.2.self_attn": theirs,
    "layers.0.norm2": theirs,
    "1.feed_forward.linear2": ours,
    "2.norm1": ours,
}


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_number_is_found(name: str, training: bool, value: float) -> None:
    model = PLANTED[name]().train(training)
    assert st.first_non_finite(model, X) is None
    part = model.get_submodule(name)
    weight = part.out_proj.weight if isinstance(part, nn.MultiheadAttention) else part.weight
    with torch.no_grad():
        weight.view(-1)[0] = value  # type: ignore[operator, union-attr]
    assert st.first_non_finite(model, X) == f"output of {name}"


class Overflows(nn.Module):
    """A sum between two modules is beyond its format; results are a dictionary."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Identity(), nn.LayerNorm(16)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        return {"y": self.norm(1e38 * self.first(x) + 3e38)}


def test_a_sum_between_modules_is_the_input_of_the_next() -> None:
    assert st.first_non_finite(Overflows(), X) == "input of norm"


def test_dictionaries_are_looked_into_and_the_hooks_removed() -> None:
    class Returns(nn.Module):
        def forward(self, x: Tensor) -> dict[str, list[Tensor]]:
            return {"y": [x, x / 0]}

    model = nn.Sequential(Returns())
    assert st.first_non_finite(model, X) == "output of 0"
    assert not any(part._forward_hooks for part in model.modules())
    with pytest.raises(TypeError):
        st.first_non_finite(model)
    assert not any(part._forward_hooks for part in model.modules())
