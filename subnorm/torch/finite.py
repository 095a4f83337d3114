"""Where in a model does the first number appear that is not finite?"""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn


def first_non_finite(model: nn.Module, *inputs: Any, **keywords: Any) -> str | None:
    """Run a model, and name the first module that reads or returns NaN or an infinity.

    Modules report as they finish, so a part comes before the whole that contains it. "output of layers.3.linear1" is
    a module that got finite numbers and returned others. "input of norm" means that the number is older: the code
    between the modules made it, such as a residual sum that overflowed. Inputs are read after the call, so a module
    that overwrites its own input is named as "input of", too.

    Args:
        model: any module; it is run once, without gradients and in its own mode, and its hooks are removed again.
        inputs, keywords: what the model is called with.

    Returns:
        "input of <name>" or "output of <name>", with the name of ``named_modules`` and "" for the model itself; None
        if all numbers are finite. Tensors are looked for in tuples, lists, mappings and dataclasses. A float mask
        with infinities counts, too.
    """
    found: list[str] = []

    def look(name: str, _module: nn.Module, given: Any, named: Any, output: Any) -> None:
        for what, values in (("input", (given, named)), ("output", output)):
            if not all(bool(tensor.isfinite().all()) for tensor in _tensors(values)):
                found.append(f"{what} of {name}")

    hooks = [
        module.register_forward_hook(partial(look, name), with_kwargs=True) for name, module in model.named_modules()
    ]
    try:
        with torch.no_grad():
            model(*inputs, **keywords)
    finally:
        for hook in hooks:
            hook.remove()
    return found[0] if found else None


def _tensors(values: Any) -> Iterator[Tensor]:
    if isinstance(values, Tensor):
        yield from values.unbind() if values.is_nested else [values]
    elif isinstance(values, Mapping):
        yield from _tensors(list(values.values()))
    elif is_dataclass(values):
        yield from _tensors([getattr(values, field.name) for field in fields(values)])
    elif isinstance(values, list | tuple):
        for value in values:
            yield from _tensors(value)
