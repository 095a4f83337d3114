"""Pre-LN, Post-LN and what came after them: where a stack has its norms, and how it adds a branch to the stream.

A placement is a module that owns all of a stack but its sublayers, and calls these: ``y = placement(x, [F1, F2, …])``.
:class:`Stack` gives it attention and feed-forward sublayers.

To add one, ``python3 course.py new placement MyPlacement`` writes a subclass of :class:`Placement` and its row in
:data:`STACK_PLACEMENTS`; override what differs from Pre-LN. A parameter of its own gets its start in
``reset_parameters``, which touches no other module's; what one block leaves to the next goes through ``shared``, never
onto the module. A placement for the blocks of both libraries is a function in ``subnorm/residual.py``; its gradient
goes into ``BACK`` in ``subnorm_lab/experiments/block_backward.py``. The formulas below count sublayers k from 0 and
blocks from 0; a block has two sublayers, N blocks have L = 2 N.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from subnorm import _rules
from subnorm.torch.attention import Heads, MultiHeadAttention
from subnorm.torch.norms import LayerNorm, RMSNorm, _float_tensor
from subnorm.torch.transformer_blocks import FeedForward

Branch = Callable[[Tensor], Tensor]
Norm = Callable[[int], nn.Module]


class Placement(nn.Module):
    """Pre-LN, and the base of all other placements: ``x = x + F(norm(x))``, and a norm at the end.

    Args:
        d_model: number of features.
        num_blocks: depth N, in blocks; a block has two sublayers.
        norm: builds a norm for a number of features.

    Raises:
        ValueError: an argument breaks its rule, or the number of branches is not two a block.

    Source: Xiong et al. 2020, arXiv:2002.04745; chapter 05.
    """

    def __init__(self, d_model: int, num_blocks: int, norm: Norm = LayerNorm) -> None:
        super().__init__()
        _rules.size("d_model", d_model)
        _rules.size("num_blocks", num_blocks)
        self.d_model, self.num_blocks = d_model, num_blocks
        self.norms = nn.ModuleList(norm(d_model) for _ in range(2 * num_blocks))
        self.final_norm = norm(d_model)

    def forward(self, x: Tensor, branches: Sequence[Branch], *more: Tensor) -> Tensor:
        """Map x, (..., d_model), to the same shape; ``more`` is what :meth:`begin` takes besides x."""
        return self.end(self.states(x, branches, *more)[-1])

    def states(self, x: Tensor, branches: Sequence[Branch], *more: Tensor) -> list[Any]:
        """What the stack carries: at its start, and after each sublayer."""
        _float_tensor("x", x)
        if len(branches) != 2 * self.num_blocks:
            raise ValueError(
                f"a stack of {self.num_blocks} blocks needs two sublayers a block, {2 * self.num_blocks} in all; got "
                f"{len(branches)}. Give attention and feed-forward of each block in turn."
            )
        states = [self.begin(x, *more)]
        for k, branch in enumerate(branches):
            states.append(self.step(states[-1], branch, k))
        return states

    def begin(self, x: Tensor) -> Any:
        """The state before the first sublayer: x, unless a placement carries more."""
        return x

    def step(self, state: Any, branch: Branch, k: int) -> Any:
        """The state after sublayer k."""
        return state + branch(self.norms[k](state))

    def stream(self, state: Any) -> Tensor:
        """The residual stream in a state, in the shape of x: all of it, or its first part."""
        return state[0] if isinstance(state, tuple) else state

    def end(self, state: Any) -> Tensor:
        """The output of the stack."""
        return self.final_norm(self.stream(state))

    def heads(self, q: Tensor, k: Tensor, v: Tensor, block: int, shared: dict[str, Tensor]) -> Heads:
        """Queries, keys and values, (..., heads, T, d_head), as attention uses them.

        ``shared`` is one dictionary for all blocks of a call, for what one leaves to those above it.
        """
        return q, k, v

    def prepare(self, stack: "Stack", x: Tensor) -> None:
        """Change the untrained weights of a stack as the paper does; x is a typical input."""

    def after_update(self, stack: "Stack") -> None:
        """Change the weights after each step of the optimiser."""


class Stack(nn.Module):
    """N blocks of attention and feed-forward, with a placement around them.

    With the placement "pre" or "post", the same function as N of :class:`TransformerBlock`.

    Args:
        placement: any :class:`Placement`; its d_model and num_blocks are those of the stack.
        num_heads: number of heads; divides d_model.

    Attributes:
        sublayers: attention and feed-forward of each block in turn; sublayer k has norm k of most placements.
        attention, feed_forward: those of one kind, one for each block.
    """

    def __init__(self, placement: Placement, num_heads: int = 4) -> None:
        super().__init__()
        d_model = placement.d_model
        self.sublayers = nn.ModuleList(
            sublayer
            for _ in range(placement.num_blocks)
            for sublayer in (MultiHeadAttention(d_model, num_heads), FeedForward(d_model, 4 * d_model))
        )
        self.placement = placement

    @property
    def attention(self) -> nn.ModuleList:
        return self.sublayers[::2]

    @property
    def feed_forward(self) -> nn.ModuleList:
        return self.sublayers[1::2]

    def forward(self, x: Tensor, mask: Tensor | None = None, *more: Tensor) -> Tensor:
        """Map x, (..., T, d_model), to the same shape; the mask as in NumPy, ``more`` as in :class:`Placement`."""
        return self.placement(x, self.branches(mask), *more)

    def branches(self, mask: Tensor | None = None) -> list[Branch]:
        """The sublayers as the placement calls them."""
        branches: list[Branch] = []
        shared: dict[str, Tensor] = {}
        for block, (attention, feed_forward) in enumerate(zip(self.attention, self.feed_forward, strict=True)):
            change = partial(self.placement.heads, block=block, shared=shared)
            branches += [partial(attention, mask=mask, change=change), feed_forward]
        return branches

    def matrices(self) -> Iterator[tuple[str, Tensor]]:
        """The weight matrices of all sublayers: query, key, value and out, then up and down. Views, not copies."""
        for attention, feed_forward in zip(self.attention, self.feed_forward, strict=True):
            assert isinstance(attention, MultiHeadAttention)
            assert isinstance(feed_forward, FeedForward)
            yield from zip(("query", "key", "value"), attention.in_proj_weight.chunk(3), strict=True)
            yield "out", attention.out_proj.weight
            yield "up", feed_forward.linear1.weight
            yield "down", feed_forward.linear2.weight

    @torch.no_grad()
    def scale_values(self, factor: float) -> None:
        """Multiply value, out, up and down by a factor; query and key keep their size."""
        for name, weight in self.matrices():
            if name in ("value", "out", "up", "down"):
                weight *= factor


class _StartsAtZero(nn.Module):
    def reset_parameters(self) -> None:
        for parameter in self.parameters():
            nn.init.zeros_(parameter)


class _ZeroLinear(_StartsAtZero, nn.Linear):
    pass


class _ZeroLayerNorm(_StartsAtZero, LayerNorm):
    pass


# --- the norm moves -------------------------------------------------------------------------------------------------


class PostLN(Placement):
    """``x = norm(x + F(x))``, and no norm at the end.

    Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.1.
    """

    def __init__(self, d_model: int, num_blocks: int, norm: Norm = LayerNorm) -> None:
        super().__init__(d_model, num_blocks, norm)
        self.final_norm = nn.Identity()

    def step(self, x: Tensor, branch: Branch, k: int) -> Tensor:
        return self.norms[k](x + branch(x))


class Sandwich(Placement):
    """A norm on both sides of the sublayer: ``x = x + norm'(F(norm(x)))``. Also called Peri-LN.

    Source: Ding et al. 2021, arXiv:2105.13290 (CogView), mpu/sparse_transformer.py, ``third_layernorm``; Kim et al.
    2025, arXiv:2502.02732 (Peri-LN), who may normalise the embedding as well. Gemma 2 and 3 have it, with RMSNorm.
    """

    def __init__(self, d_model: int, num_blocks: int, norm: Norm = LayerNorm) -> None:
        super().__init__(d_model, num_blocks, norm)
        self.outer_norms = nn.ModuleList(norm(d_model) for _ in range(2 * num_blocks))

    def step(self, x: Tensor, branch: Branch, k: int) -> Tensor:
        return x + self.outer_norms[k](branch(self.norms[k](x)))


class NormAfterBranch(Placement):
    """``x = x + norm(F(x))``: the sublayer reads the raw stream.

    Source: OLMo 2, arXiv:2501.00656, section 3.3.2; OLMo-core, nn/transformer/block.py,
    ``ReorderedNormTransformerBlock``.

    Known mistake: calling it Post-LN. The stream itself is never normalised before the end.
    """

    def step(self, x: Tensor, branch: Branch, k: int) -> Tensor:
        return x + self.norms[k](branch(x))


class SwinV2(NormAfterBranch):
    """Res-post-norm: ``x = x + norm(F(x))``, whose gain and shift are 0 at the start, so every block is the identity.

    Source: Liu et al. 2022, arXiv:2111.09883; models/swin_transformer_v2.py, ``_init_respostnorm``.
    """

    def __init__(self, d_model: int, num_blocks: int) -> None:
        super().__init__(d_model, num_blocks, _ZeroLayerNorm)
        self.final_norm = LayerNorm(d_model)


class MixLN(Placement):
    """Post-LN in the first quarter of the blocks, Pre-LN in the rest.

    Source: Li, Yin, Liu 2024, arXiv:2412.13795; peft_pretraining/modeling_llama.py, ``max_post_norm_layer``, and the
    README's 3 of 12 blocks.
    """

    def step(self, x: Tensor, branch: Branch, k: int) -> Tensor:
        if k // 2 < self.num_blocks // 4:
            return self.norms[k](x + branch(x))
        return super().step(x, branch, k)


class B2T(PostLN):
    """Post-LN with one more skip path, from the block's bottom to its top.

    ``a = norm(x + attention(x))``, ``x = norm'(x + a + feed_forward(a))``.

    Source: Takase et al. 2023, arXiv:2206.00330; fairseq/modules/transformer_layer.py, ``x = residual_bottom + x``.
    Their code also calls ``rescaling_init``, which multiplies the weights by N^(-1/2). That is not done here.
    """

    def begin(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x, x

    def step(self, state: tuple[Tensor, Tensor], branch: Branch, k: int) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        x, bottom = state
        total = x + branch(x)
        if k % 2 == 0:
            return self.norms[k](total), x
        x = self.norms[k](bottom + total)
        return x, x


class Parallel(Placement):
    """Attention and feed-forward read the same normalised stream.

    ``x = x + attention(norm(x)) + feed_forward(norm(x))``, with one norm a block.

    Source: Wang, Komatsuzaki 2021 (GPT-J), mesh_transformer/layers.py, ``g_psum(attn_out + dense_out)``; Chowdhery et
    al. 2022, arXiv:2204.02311 (PaLM), section 2.
    """

    def __init__(self, d_model: int, num_blocks: int, norm: Norm = LayerNorm) -> None:
        super().__init__(d_model, num_blocks, norm)
        self.norms = self.norms[:num_blocks]

    def begin(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x, x

    def step(self, state: tuple[Tensor, Tensor], branch: Branch, k: int) -> tuple[Tensor, Tensor]:
        x, reads = state
        if k % 2 == 0:
            reads = self.norms[k // 2](x)
        return x + branch(reads), reads


# --- a constant scales ----------------------------------------------------------------------------------------------


class DeepNorm(PostLN):
    """``x = norm(alpha x + F(x))``; the initial weights of value, out, up and down are multiplied by beta.

    ``alpha = (2 N)^(1/4)``, ``beta = (8 N)^(-1/4)`` for a stack that is only an encoder or only a decoder. Query and
    key keep their size.

    Source: Wang et al. 2022, arXiv:2203.00555, sections 4.1 and 4.3; torchscale/architecture/encoder.py.

    Known mistake: ``norm(x + alpha F(x))``, with alpha on the wrong term.
    """

    def step(self, x: Tensor, branch: Branch, k: int) -> Tensor:
        return self.norms[k]((2 * self.num_blocks) ** 0.25 * x + branch(x))

    def prepare(self, stack: Stack, x: Tensor) -> None:
        stack.scale_values((8 * self.num_blocks) ** -0.25)


class LayerNormScaling(Placement):
    """``x = x + F(norm(x) / sqrt(b))``, with b the number of the block, from 1.

    Source: Sun et al. 2025, arXiv:2502.05795; peft_pretraining/modeling_llama.py, ``scale_factor``.
    """

    def step(self, x: Tensor, branch: Branch, k: int) -> Tensor:
        return x + branch(self.norms[k](x) / math.sqrt(k // 2 + 1))


class Admin(PostLN):
    """``x = norm(omega_k * x + F(x))``, with omega_k measured on the untrained stack, then learned.

    Every omega_k is a vector filled with one number: ``omega_0 = 1``, and
    ``omega_(k+1)^2 = Var(omega_k x_k) + Var(F_k(x_k))``.

    Source: Liu et al. 2020, arXiv:2004.08249; Transformer-Clinic, fairseq/modules/transformer_layer.py,
    ``encoder_ratio``.
    """

    def __init__(self, d_model: int, num_blocks: int, norm: Norm = LayerNorm) -> None:
        super().__init__(d_model, num_blocks, norm)
        self.omega = nn.Parameter(torch.empty(2 * num_blocks, d_model))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.ones_(self.omega)

    def step(self, x: Tensor, branch: Branch, k: int) -> Tensor:
        return self.norms[k](self.omega[k] * x + branch(x))

    @torch.no_grad()
    def prepare(self, stack: Stack, x: Tensor) -> None:
        variance = 1.0
        for k, branch in enumerate(stack.branches()):
            self.omega[k] = math.sqrt(variance)
            added = branch(x)
            variance = float((self.omega[k] * x).var(correction=0) + added.var(correction=0))
            x = self.norms[k](self.omega[k] * x + added)


class TFixup(Placement):
    """``x = x + F(x)`` without a norm; value, out, up and down are multiplied by ``(9 N)^(-1/4)`` at the start.

    This is the factor of a decoder. The paper scales the embeddings too, and needs no warm-up.

    Source: Huang et al. 2020, "Improving Transformer Optimization Through Better Initialization"; its code,
    fairseq/modules/transformer_layer.py, which also undoes an earlier factor of 1/sqrt(2) of the values.
    """

    def __init__(self, d_model: int, num_blocks: int) -> None:
        super().__init__(d_model, num_blocks, nn.Identity)

    def prepare(self, stack: Stack, x: Tensor) -> None:
        stack.scale_values((9 * self.num_blocks) ** -0.25)


class Fixup(Placement):
    """``x = x + scale_k F(x - shift_k)`` without a norm; the last matrix of every branch is 0 at the start.

    With L sublayers, up is multiplied by L^(-1/2), and query, key and value by L^(-1/6). The scales start at 1, the
    shifts at 0. The paper has a shift before every matrix; a placement can reach only the first.

    Source: Zhang, Dauphin, Ma 2019, arXiv:1901.09321; its code, fairseq/models/transformer_zero.py.
    """

    def __init__(self, d_model: int, num_blocks: int) -> None:
        super().__init__(d_model, num_blocks, nn.Identity)
        self.scale = nn.Parameter(torch.empty(2 * num_blocks))
        self.shift = nn.Parameter(torch.empty(2 * num_blocks))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.ones_(self.scale)
        nn.init.zeros_(self.shift)

    def step(self, x: Tensor, branch: Branch, k: int) -> Tensor:
        return x + self.scale[k] * branch(x - self.shift[k])

    @torch.no_grad()
    def prepare(self, stack: Stack, x: Tensor) -> None:
        power = {"query": -1 / 6, "key": -1 / 6, "value": -1 / 6, "up": -1 / 2}
        for name, weight in stack.matrices():
            if name in power:
                weight *= (2 * self.num_blocks) ** power[name]
            else:
                nn.init.zeros_(weight)


# --- a gate scales, and learns --------------------------------------------------------------------------------------


class SkipInit(Placement):
    """``x = x + alpha_k F(x)`` without a norm; one alpha a sublayer, 0 at the start.

    Source: De, Smith 2020, arXiv:2002.10444, for residual networks without BatchNorm; timm, models/nfnet.py,
    ``skipinit_gain``.
    """

    def __init__(self, d_model: int, num_blocks: int) -> None:
        super().__init__(d_model, num_blocks, nn.Identity)
        self.alpha = nn.Parameter(torch.empty(2 * num_blocks))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.alpha)

    def step(self, x: Tensor, branch: Branch, k: int) -> Tensor:
        return x + self.alpha[k] * branch(x)


class ReZero(SkipInit):
    """``x = x + alpha F(x)`` without a norm; one alpha a block, 0 at the start.

    Source: Bachlechner et al. 2021, arXiv:2003.04887; rezero/transformer/rztx.py, ``resweight``.
    """

    def __init__(self, d_model: int, num_blocks: int) -> None:
        super().__init__(d_model, num_blocks)
        self.alpha = nn.Parameter(torch.zeros(num_blocks))

    def step(self, x: Tensor, branch: Branch, k: int) -> Tensor:
        return x + self.alpha[k // 2] * branch(x)


class LayerScale(Placement):
    """``x = x + gate_k * F(norm(x))``, with a vector gate_k that starts at a small number.

    Args:
        start: of every gate; CaiT's code has 1e-4 by default, and 1e-5 or 1e-6 in its models.

    Source: Touvron et al. 2021, arXiv:2103.17239 (CaiT); deit, cait_models.py, ``gamma_1``.
    """

    def __init__(self, d_model: int, num_blocks: int, norm: Norm = LayerNorm, start: float = 1e-4) -> None:
        super().__init__(d_model, num_blocks, norm)
        self.start = start
        self.gates = nn.Parameter(torch.empty(2 * num_blocks, d_model))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.constant_(self.gates, self.start)

    def step(self, x: Tensor, branch: Branch, k: int) -> Tensor:
        return x + self.gates[k] * branch(self.norms[k](x))


class DropPath(Placement):
    """In training ``x = x + b / (1 - p) F(norm(x))``, with b = 0 in a share p of the samples; then ``x + F(norm(x))``.

    One draw for each sample and sublayer. The rate p rises linearly from 0 in the first block to ``rate`` in the last.

    Args:
        rate: p of the last block.

    Source: Huang et al. 2016, arXiv:1603.09382 (stochastic depth), who scale at test time instead; timm,
    layers/drop.py.

    Known mistake: one draw for the whole batch, which makes the mean over a batch as noisy as one sample.
    """

    def __init__(self, d_model: int, num_blocks: int, norm: Norm = LayerNorm, rate: float = 0.2) -> None:
        super().__init__(d_model, num_blocks, norm)
        _rules.probability("rate", rate)
        self.rates = torch.linspace(0, rate, num_blocks, device="cpu").tolist()  # numbers, also on the meta device

    def step(self, x: Tensor, branch: Branch, k: int) -> Tensor:
        added = branch(self.norms[k](x))
        if self.training:
            keep = 1 - self.rates[k // 2]
            added = added * (x.new_empty(len(x), *[1] * (x.ndim - 1)).bernoulli_(keep) / keep)
        return x + added


class AdaLNZero(Placement):
    """A condition c gives shift, scale and gate: ``x = x + gate * F(norm(x) (1 + scale) + shift)``.

    ``(shift, scale, gate) twice = W silu(c)`` for the two sublayers of a block; the last norm has shift and scale only.
    All W are 0 at the start, so every block is the identity. The norms have no gain and no shift of their own.

    :meth:`forward` takes the condition, shape (..., 1, d_model), after the branches; without one it is 0.

    Source: Peebles, Xie 2022, arXiv:2212.09748 (DiT); models.py, ``adaLN_modulation``.
    """

    def __init__(self, d_model: int, num_blocks: int) -> None:
        super().__init__(d_model, num_blocks, partial(LayerNorm, eps=1e-6, elementwise_affine=False))
        self.modulation = nn.ModuleList(_ZeroLinear(d_model, 6 * d_model) for _ in range(num_blocks))
        self.final_modulation = _ZeroLinear(d_model, 2 * d_model)

    def begin(self, x: Tensor, condition: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return x, x.new_zeros(self.d_model) if condition is None else condition

    def step(self, state: tuple[Tensor, Tensor], branch: Branch, k: int) -> tuple[Tensor, Tensor]:
        x, condition = state
        six = self.modulation[k // 2](F.silu(condition)).chunk(6, dim=-1)
        shift, scale, gate = six[3:] if k % 2 else six[:3]
        return x + gate * branch(self.norms[k](x) * (1 + scale) + shift), condition

    def end(self, state: tuple[Tensor, Tensor]) -> Tensor:
        shift, scale = self.final_modulation(F.silu(state[1])).chunk(2, dim=-1)
        return self.final_norm(state[0]) * (1 + scale) + shift


# --- more than one stream -------------------------------------------------------------------------------------------


class ResiDual(PostLN):
    """A Post-LN stream, and beside it the sum of all branches: ``out = x + norm(r)``.

    ``x = norm(x + F(x))``, ``r = r + F(x)`` with the same F(x); both start as the input.

    Source: Xie et al. 2023, arXiv:2304.14802; resi_dual/resi_dual_layers.py, ``res``, with its scale of 1.
    """

    def __init__(self, d_model: int, num_blocks: int, norm: Norm = LayerNorm) -> None:
        super().__init__(d_model, num_blocks, norm)
        self.final_norm = norm(d_model)

    def begin(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x, x

    def step(self, state: tuple[Tensor, Tensor], branch: Branch, k: int) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        x, total = state
        added = branch(x)
        return self.norms[k](x + added), total + added

    def end(self, state: tuple[Tensor, Tensor]) -> Tensor:
        return state[0] + self.final_norm(state[1])


class HyperConnections(Placement):
    """n streams: a sublayer reads a mixture of them, and writes to each; the streams mix, too. Their sum is the output.

    ``H = A H + b F(norm(a H))``, with H of shape (n, d), and A (n, n), a (n,) and b (n,) learned for each sublayer. At
    the start all streams are the input, A is the identity, b is 1, and a picks stream k mod n.

    This is the static form. In the dynamic one A, a and b depend on the input as well; at the start that part is 0.

    Args:
        streams: n.

    Source: Zhu et al. 2024, arXiv:2409.19606, equations 1 to 5 and 14.
    """

    def __init__(self, d_model: int, num_blocks: int, norm: Norm = LayerNorm, streams: int = 4) -> None:
        super().__init__(d_model, num_blocks, norm)
        _rules.size("streams", streams)
        self.streams = streams
        self.mix = nn.Parameter(torch.empty(2 * num_blocks, streams, streams))
        self.read = nn.Parameter(torch.empty(2 * num_blocks, streams))
        self.write = nn.Parameter(torch.empty(2 * num_blocks, streams))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        identity = torch.eye(self.streams)
        self.mix.copy_(identity)  # broadcast over the sublayers
        self.read.copy_(identity[torch.arange(2 * self.num_blocks) % self.streams])
        self.write.fill_(1)

    def connections(self, k: int) -> tuple[Tensor, Tensor, Tensor]:
        """A, a and b of sublayer k."""
        return self.mix[k], self.read[k], self.write[k]

    def begin(self, x: Tensor) -> Tensor:
        return x.unsqueeze(-2).expand(*x.shape[:-1], self.streams, self.d_model)

    def step(self, state: Tensor, branch: Branch, k: int) -> Tensor:
        mix, read, write = self.connections(k)
        return mix @ state + write.unsqueeze(-1) * branch(self.norms[k](read @ state)).unsqueeze(-2)

    def stream(self, state: Tensor) -> Tensor:
        return state.sum(dim=-2)


#: A score that a sigmoid, or a softmax against zeros, maps to nearly 1: e^-8 is 0.0003. A larger one hardly learns.
NEARLY_ALL = 8.0


class ManifoldHyperConnections(HyperConnections):
    """mHC: hyper-connections whose A is doubly stochastic.

    ``A = sinkhorn(.)``, ``a = sigmoid(.)``, ``b = 2 sigmoid(.)`` of learned numbers.

    The static form again. The paper's start is not repeated: here b starts at 1, a at 1/n, and A near the identity.

    Source: Xie et al. 2025, arXiv:2512.24880, section 4.2.
    """

    @torch.no_grad()
    def reset_parameters(self) -> None:
        self.mix.copy_(NEARLY_ALL * torch.eye(self.streams))
        self.read.fill_(-math.log(self.streams - 1) if self.streams > 1 else NEARLY_ALL)
        self.write.zero_()

    def connections(self, k: int) -> tuple[Tensor, Tensor, Tensor]:
        return sinkhorn(self.mix[k]), self.read[k].sigmoid(), 2 * self.write[k].sigmoid()


def sinkhorn(scores: Tensor, rounds: int = 20) -> Tensor:
    """A matrix whose rows and columns sum to 1: ``exp(scores)``, its columns and rows divided by their sums in turn.

    Computed with logarithms, so that no sum is rounded to 0.

    Args:
        scores: shape (..., n, n).
        rounds: the paper's 20; the rows come last, so the columns are only nearly right.

    Source: Xie et al. 2025, arXiv:2512.24880, equation 9.
    """
    for _ in range(rounds):
        scores = scores.log_softmax(dim=-2)
        scores = scores.log_softmax(dim=-1)
    return scores.exp()


class AttentionResiduals(Placement):
    """A sublayer reads a weighted mean of the input and all earlier branches, instead of their sum.

    ``h_k = sum_i w_i v_i``, ``v_0 = x``, ``v_(k+1) = F_k(norm(h_k))``, ``w = softmax_i(q_k . rmsnorm(v_i))``. All
    queries q_k are 0 at the start, so h is the plain mean. The output is one more such mean, normalised.

    Source: Kimi Team 2026, arXiv:2603.15031, section 3.
    """

    def __init__(self, d_model: int, num_blocks: int, norm: Norm = LayerNorm) -> None:
        super().__init__(d_model, num_blocks, norm)
        self.queries = nn.Parameter(torch.empty(2 * num_blocks + 1, d_model))
        self.key_norm = RMSNorm(d_model)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.queries)

    def begin(self, x: Tensor) -> Tensor:
        return x.unsqueeze(-2)  # (..., sources, d_model)

    def step(self, state: Tensor, branch: Branch, k: int) -> Tensor:
        added = branch(self.norms[k](self.stream(state)))
        return torch.cat([state, added.unsqueeze(-2)], dim=-2)

    def stream(self, state: Tensor) -> Tensor:
        scores = self.key_norm(state) @ self.queries[state.shape[-2] - 1]  # (..., sources)
        return (scores.softmax(dim=-1).unsqueeze(-2) @ state).squeeze(-2)


# --- inside attention, and instead of the norm ----------------------------------------------------------------------


class QKNorm(Placement):
    """Pre-LN, and queries and keys are normalised as well, before rotary positions.

    ``softmax(norm(q) norm(k)^T / sqrt(d_head)) v``, with RMSNorm.

    Args:
        num_heads: number of heads.
        full_width: one RMSNorm over all heads together (OLMo 2), instead of one over each head (Qwen3, Gemma 3).
        eps: of these norms; Qwen3, Gemma 3 and OLMo 2 have 1e-6.

    Source: Dehghani et al. 2023, arXiv:2302.05442, with LayerNorm; transformers, models/qwen3/modeling_qwen3.py,
    ``q_norm``; OLMo-core, nn/attention, ``use_head_qk_norm``.

    Known mistake: a gain after the rotary positions. It does not commute with the rotation, unless it is equal within
    each pair of features.
    """

    def __init__(
        self,
        d_model: int,
        num_blocks: int,
        norm: Norm = LayerNorm,
        num_heads: int = 4,
        full_width: bool = False,
        eps: float = 1e-5,
    ) -> None:
        super().__init__(d_model, num_blocks, norm)
        _rules.heads(d_model, num_heads)
        self.num_heads, self.full_width = num_heads, full_width
        width = d_model if full_width else d_model // num_heads
        self.q_norms = nn.ModuleList(RMSNorm(width, eps) for _ in range(num_blocks))
        self.k_norms = nn.ModuleList(RMSNorm(width, eps) for _ in range(num_blocks))

    def heads(self, q: Tensor, k: Tensor, v: Tensor, block: int, shared: dict[str, Tensor]) -> Heads:
        return self._normed(q, self.q_norms[block]), self._normed(k, self.k_norms[block]), v

    def _normed(self, x: Tensor, norm: nn.Module) -> Tensor:
        if not self.full_width:
            return norm(x)
        return norm(x.transpose(-2, -3).flatten(-2)).unflatten(-1, (self.num_heads, -1)).transpose(-2, -3)


class Olmo2(NormAfterBranch, QKNorm):
    """``x = x + norm(F(x))``, with queries and keys normalised over the full width, and RMSNorm everywhere.

    Args:
        num_heads: number of heads.
        eps: of all norms; OLMo 2 was trained with 1e-6.

    Source: OLMo 2, arXiv:2501.00656, section 3.3.2, which reports that neither change is enough alone.
    """

    def __init__(self, d_model: int, num_blocks: int, num_heads: int = 4, eps: float = 1e-5) -> None:
        super().__init__(d_model, num_blocks, partial(RMSNorm, eps=eps), num_heads, full_width=True, eps=eps)


class ValueResidual(Placement):
    """Pre-LN, and every block but the first averages its values with those of the first: ``v = (v + v_first) / 2``.

    Source: Zhou et al. 2024, arXiv:2410.17897; src/modeling/modeling_llama_resformer.py, ``formal_layer_values``.
    """

    def heads(self, q: Tensor, k: Tensor, v: Tensor, block: int, shared: dict[str, Tensor]) -> Heads:
        if block == 0:
            shared["first values"] = v
            return q, k, v
        return q, k, 0.5 * shared["first values"] + 0.5 * v


class NGPT(Placement):
    """The stream stays on the unit sphere: ``x = unit(x + alpha_k * (unit(F(x)) - x))``, with ``unit(h) = h / |h|``.

    Alpha starts at 0.05. Queries and keys are unit vectors with a learned scale, and attention multiplies their
    products by sqrt(d_head). The matrices that read the stream have unit rows, those that write to it unit columns,
    after every step. The paper's scales of the feed-forward and of the logits are left out.

    Source: Loshchilov et al. 2024, arXiv:2410.01131; model.py, ``justnorm``, and train.py, ``normalize_matrices``.
    """

    def __init__(self, d_model: int, num_blocks: int) -> None:
        super().__init__(d_model, num_blocks, nn.Identity)
        # The code stores alpha / 0.05 / sqrt(d), and s_qk / sqrt(d), to make Adam's steps on them smaller.
        self.alpha = nn.Parameter(torch.empty(2 * num_blocks, d_model))
        self.qk_scale = nn.Parameter(torch.empty(num_blocks, d_model))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.constant_(self.alpha, self.d_model**-0.5)
        nn.init.constant_(self.qk_scale, self.d_model**-0.5)

    def begin(self, x: Tensor) -> Tensor:
        return F.normalize(x, dim=-1)

    def step(self, x: Tensor, branch: Branch, k: int) -> Tensor:
        rate = 0.05 * self.d_model**0.5 * self.alpha[k].abs()
        return F.normalize(x + rate * (F.normalize(branch(x), dim=-1) - x), dim=-1)

    def heads(self, q: Tensor, k: Tensor, v: Tensor, block: int, shared: dict[str, Tensor]) -> Heads:
        heads, d_head = q.shape[-3], q.shape[-1]
        scale = self.d_model**0.5 * self.qk_scale[block].view(heads, 1, d_head)
        return d_head * scale * F.normalize(q, dim=-1), scale * F.normalize(k, dim=-1), v

    def prepare(self, stack: Stack, x: Tensor) -> None:
        self.after_update(stack)

    @torch.no_grad()
    def after_update(self, stack: Stack) -> None:
        for name, weight in stack.matrices():  # (outputs, inputs)
            weight.copy_(F.normalize(weight, dim=0 if name in ("out", "down") else 1))


class DynamicTanh(nn.Module):
    """DyT, a squashing function instead of a norm: ``weight tanh(alpha x) + bias``, with one alpha, 0.5 at the start.

    Source: Zhu et al. 2025, arXiv:2503.10622; dynamic_tanh.py.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.empty(()))
        self.weight = nn.Parameter(torch.empty(d_model))
        self.bias = nn.Parameter(torch.empty(d_model))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.constant_(self.alpha, 0.5)
        nn.init.ones_(self.weight)
        nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * torch.tanh(self.alpha * x) + self.bias


class DynamicErf(nn.Module):
    """Derf: ``weight erf(alpha x + shift) + bias``, with alpha 0.5 and shift 0 at the start.

    Source: Chen et al. 2025, arXiv:2512.10938; ViT/dynamic_erf.py.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.empty(()))
        self.shift = nn.Parameter(torch.empty(()))
        self.weight = nn.Parameter(torch.empty(d_model))
        self.bias = nn.Parameter(torch.empty(d_model))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.constant_(self.alpha, 0.5)
        nn.init.zeros_(self.shift)
        nn.init.ones_(self.weight)
        nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * torch.erf(self.alpha * x + self.shift) + self.bias


class ScaleNorm(nn.Module):
    """``g x / |x|`` with one learned number g, sqrt(d) at the start: RMSNorm with all gains equal.

    Source: Nguyen, Salazar 2019, arXiv:1910.05895.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.d_model = d_model
        self.g = nn.Parameter(torch.empty(()))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.constant_(self.g, self.d_model**0.5)

    def forward(self, x: Tensor) -> Tensor:
        return self.g * F.normalize(x, dim=-1, eps=1e-5)


class ChannelsFirstLayerNorm(LayerNorm):
    """LayerNorm of images: over the channels of each pixel, which are the second axis.

    Args:
        d_model: number of channels.
        eps: as in :func:`subnorm.torch.layer_norm`; 1e-6 as in ConvNeXt, not the 1e-5 of the other norms.

    Source: Liu et al. 2022, arXiv:2201.03545 (ConvNeXt); models/convnext.py, ``LayerNorm``.

    Known mistake: GroupNorm with one group, which shares its statistics among all pixels.
    """

    def __init__(self, d_model: int, eps: float = 1e-6) -> None:
        super().__init__(d_model, eps)

    def forward(self, x: Tensor) -> Tensor:
        """Map x, (B, d_model, ...), to the same shape."""
        return super().forward(x.movedim(1, -1)).movedim(-1, 1)


#: The placements of a whole stack, by name: each builds one from d_model and num_blocks.
STACK_PLACEMENTS: dict[str, Callable[[int, int], Placement]] = {
    "pre": Placement,
    "post": PostLN,
    "sandwich": Sandwich,
    "after_branch": NormAfterBranch,
    "olmo2": Olmo2,
    "swin_v2": SwinV2,
    "mix_ln": MixLN,
    "b2t": B2T,
    "parallel": Parallel,
    "deepnorm": DeepNorm,
    "layernorm_scaling": LayerNormScaling,
    "admin": Admin,
    "t_fixup": TFixup,
    "fixup": Fixup,
    "rezero": ReZero,
    "skip_init": SkipInit,
    "layer_scale": LayerScale,
    "drop_path": DropPath,
    "adaln_zero": AdaLNZero,
    "resi_dual": ResiDual,
    "hyper_connections": HyperConnections,
    "mhc": ManifoldHyperConnections,
    "attention_residuals": AttentionResiduals,
    "qk_norm": QKNorm,
    "value_residual": ValueResidual,
    "ngpt": NGPT,
    "scale_norm": partial(Placement, norm=ScaleNorm),
    "dyt": partial(Placement, norm=DynamicTanh),
    "derf": partial(Placement, norm=DynamicErf),
}
