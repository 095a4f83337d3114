"""Figures and proofs of chapter 02, Residual connections."""

from functools import cache, partial

import matplotlib.pyplot as plt
import numpy as np
import torch

import subnorm.numpy as sn
import subnorm.torch as st
from subnorm_lab import diagrams, figures, live, report, stories
from subnorm_lab.chapters import begin as begin
from subnorm_lab.experiments import degradation, gpt2_init, paths, signal
from subnorm_lab.report import say, table


def would_say(text):
    """Probabilities of the next token before, between and after the five blocks, (6, T, 512)."""
    model = stories.load()
    scores = stories.logits(model, stories.stream(model, text)[::2])
    odds = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return odds / odds.sum(axis=-1, keepdims=True)


def draw_lens():
    model, texts = stories.load(), stories.texts()
    text, places = texts[0], range(50, 55)  # here all words and guesses are whole words
    said = would_say(text)  # (6, T, 512)

    def word(token):
        return model.tokenizer.decode([token]).strip()

    def cell(guess, right):
        return (f"{word(guess)} ✓", figures.GREEN) if right else (word(guess), None)

    guesses = said[:, places].argmax(axis=-1)  # (6, 5)
    hits = guesses == text[places.start + 1 : places.stop + 1]

    def frame(blocks):
        right = hits[blocks].sum()
        return f"After {blocks} of 5 blocks, {right} of the model's {len(places)} guesses are right (✓).", [blocks]

    live.chart(
        "lens",
        "A small trained model reads “with it, but it was too high”",
        [live.slider("blocks", "blocks", range(6), 3, play=True)],
        [
            live.Grid(
                "its guess for the next word, after each block",
                [f"block {blocks}" if blocks else "at first" for blocks in range(6)],
                [word(text[at]) for at in places],
                [[cell(*one) for one in zip(*row, strict=True)] for row in zip(guesses, hits, strict=True)],
                corner="reads",
                by="row",
            )
        ],
        frame,
        alt="A grid. Its columns are five words that a model reads: with, it, comma, but, it; its rows are its guesses "
        "for the next word, at first and after each of five blocks. At first every guess is the word just read. "
        "After block 3 three guesses are right and green, after block 5 all five.",
    )


def draw_one_plus_sign():
    figures.show(
        diagrams.residual_block(),
        alt="A line from x forks. The branch below goes through a box F; the skip path goes over it in an arc, "
        "with nothing on it. Both meet at a plus sign, whose output is y = x + F(x).",
    )


def tabulate_gradients(without, within):
    """Five of the blocks, and the norm of the gradient at the input of each, without skips and with them."""
    depth = len(without)
    blocks = [1, *(k * depth // 4 for k in (1, 2, 3)), depth]
    table(
        ["block", "without skips", "with skips"],
        [[block, *(f"{norms[block - 1]:.2g}" for norms in (without, within))] for block in blocks],
    )


def prove_one_plus_sign():
    """Prove claim 02-one-plus-sign."""
    L = 32  # blocks
    plain, skip = (
        signal.propagate(wiring, "torch", L).gradient[:, 0]  # (seeds,)
        for wiring in ("plain", "residual")
    )
    say("plain_gradient", np.median(plain), ".1e")
    say("skip_gradient", np.median(skip), ".0f")
    say("skip_law", (1 + 1 / 6) ** (L / 2), ".0f")
    assert plain.max() < 1e-12
    assert 10 < skip.min() < skip.max() < 13


def tabulate_correction(x, towards_the_mean, y):
    rows = {"x": x, "F(x)": towards_the_mean(x), "y = x + F(x)": y}
    table(
        ["", "values"],
        [[k, ", ".join(f"{v:.1f}" for v in row)] for k, row in rows.items()],
    )


def prove_branch_learns_the_correction(x, towards_the_mean, y):
    """Prove claim 02-branch-learns-the-correction."""
    # One function for both, a call and a +, with one rule: the branch keeps the
    # shape. Without the rule, broadcasting would hide a wrong axis.
    y_numpy = sn.residual(x, towards_the_mean)
    y_torch = st.residual(torch.from_numpy(x), towards_the_mean)

    assert np.array_equal(y, y_numpy)
    assert np.array_equal(y, y_torch.numpy())
    assert np.allclose(y - x, towards_the_mean(x), rtol=0, atol=1e-15)


def draw_nested_classes():
    figures.show(
        diagrams.nested_classes(),
        alt="Two panels, each with a cross and three outlines, marked 2, 4 and 8 blocks. Plain: the outlines "
        "overlap, none encloses another, and the largest lies farther from the cross than the middle one. "
        "Residual: each outline encloses the smaller ones, and the cross is within the largest.",
    )


def prove_silent_branch_is_identity():
    """Prove claim 02-silent-branch-is-identity."""
    torch.manual_seed(0)
    block = st.TransformerBlock(d_model=16, num_heads=4, d_ff=64)

    for last in (block.self_attn.out_proj, block.feed_forward.linear2):
        torch.nn.init.zeros_(last.weight)
        torch.nn.init.zeros_(last.bias)

    tokens = torch.randn(2, 5, 16)  # (B, T, d)

    assert torch.equal(block(tokens), tokens)
    assert torch.equal(block.feed_forward(tokens), torch.zeros_like(tokens))


L, DEPTHS = 32, [4, 8, 16, 24, 32]
INITS = {"He": "he", "Xavier": "xavier", "torch default": "torch"}
WIRINGS = {  # wiring, factor on the branch
    "plain": ("plain", lambda depth: 1.0),
    "residual": ("residual", lambda depth: 1.0),
    "scaled": ("residual", lambda depth: 1 / np.sqrt(depth)),
}
LAYERS = np.arange(L + 1)


@cache
def propagate(init, name, depth=L):
    wiring, scale = WIRINGS[name]
    return signal.propagate(wiring, init, depth, scale(depth))


def gradient_law(init, name, depth):
    """The norm after 0, 1, ... blocks of its way."""
    wiring, scale = WIRINGS[name]
    gain = scale(depth) ** 2 * signal.gain(init)
    return np.sqrt(signal.expected_signal(wiring, depth, gain))


def draw_gradient():
    curves = {
        "scaled": live.Curve("x + F(x)/√L", figures.PINK, "-."),
        "residual": live.Curve("x + F(x)", **figures.LOOKS["residual"]),
        "plain": live.Curve("F(x)", **figures.LOOKS["plain"]),
        "theory": live.Curve("theory", figures.BLACK, marks="only"),
    }

    def frame(depth, init):
        blocks = np.arange(0, depth + 1, max(1, depth // 16))
        few, panel, laws, ends = blocks[::4], {}, [], {}
        for name in WIRINGS:
            gradient = propagate(init, name, depth).gradient  # (seeds, depth + 1)
            panel[name] = (blocks, gradient[:, blocks])
            laws.append(gradient_law(init, name, depth)[depth - few])
            ends[name] = live.number(np.median(gradient[:, 0]))
        panel["theory"] = (np.tile(few, len(laws)), np.concatenate(laws))
        return (
            f"At the first of {depth} blocks, the norm of the gradient is {ends['plain']} with"
            f" F(x), {ends['residual']} with x + F(x), and {ends['scaled']} with"
            " x + F(x)/√L.",
            [panel],
        )

    live.chart(
        "gradient",
        "The norm of the gradient, block by block: median and range of eight stacks",
        [
            live.slider("depth", "blocks L", DEPTHS, L),
            live.choice("init", "init", INITS, "he"),
        ],
        [
            live.Lines(
                live.Axis("block", limits=(0, L)),
                live.Axis("norm of the gradient, last = 1", log=True),
                curves,
                height=340,
            )
        ],
        frame,
        "The norm of the gradient against the block on a logarithmic axis, for 32 blocks with He's init. "
        "All three curves are at one at the last block. Towards the first block that of x + F(x) rises by "
        "more than four powers of ten; those of F(x) and of x + F(x)/√L stay level. The dots of the theory "
        "lie on every curve.",
    )


def say_interval(name, values, spec):
    say(f"{name}_low", values.min(), spec)
    say(f"{name}_high", values.max(), spec)


def prove_residual_can_explode():
    """Prove claims 02-residual-can-explode, 02-small-branch-frees-the-init."""
    stacks = [(init, name) for init in signal.INITS for name in WIRINGS]
    first = {stack: propagate(*stack).gradient[:, 0] for stack in stacks}  # (seeds,)
    say_interval("he_residual", first["he", "residual"] / 1e3, ".0f")
    say_interval("he_scaled", first["he", "scaled"], ".2f")
    say_interval("torch_residual", first["torch", "residual"], ".0f")

    for key, arrived in first.items():
        law = gradient_law(*key, L)[-1]
        assert 0.75 < np.exp(np.log(arrived).mean()) / law < 1.2
    assert first["torch", "plain"].max() < 1e-11
    assert first["he", "residual"].min() > 1e4
    say("gradient_law", gradient_law("he", "residual", L)[-1] / 1e3, ".0f")
    assert gradient_law("he", "residual", L)[-1] == 2 ** (L / 2)
    for init in signal.INITS:
        for depth in DEPTHS:
            arrived = propagate(init, "scaled", depth).gradient[:, 0]
            assert 1 < arrived.min() < arrived.max() < 2


def prove_slope_can_be_zero(slopes):
    """Prove claim 02-slope-can-be-zero."""
    assert slopes[-1.0] == 0


def draw_slope(slope):
    grid = np.linspace(-3, 3, 25)

    def frame(w):
        slopes = np.array([slope(w, at) for at in grid])
        return (
            f"With w = {live.number(w)}, the slope at 0 is {live.number(slope(w))}."
            f" It is below 1 at {(slopes < 1).sum()} of 25 points.",
            [
                {"y": (grid, grid + np.tanh(w * grid)), "x": (grid, grid)},
                {"slope": (grid, slopes), "one": (grid, np.ones(25))},
            ],
        )

    live.chart(
        "slope",
        "The smallest residual block, y = x + tanh(wx), and its slope",
        [
            live.slider(
                "w",
                "weight w",
                {live.number(w): w for w in (-2, -1.5, -1, -0.5, 0.5, 1)},
                -1,
            )
        ],
        [
            live.Lines(
                live.Axis("x"),
                live.Axis("y"),
                {
                    "y": live.Curve("x + tanh(wx)", figures.GREEN),
                    "x": live.Curve("x", figures.GREY, ":"),
                },
                height=240,
            ),
            live.Lines(
                live.Axis("x"),
                live.Axis("dy/dx"),
                {
                    "slope": live.Curve("slope", figures.ORANGE),
                    "one": live.Curve("always at least 1?", figures.GREY, ":"),
                },
                height=240,
            ),
        ],
        frame,
        alt="Two panels for the weight minus one. Left, y = x + tanh(wx) lies flat at the origin, and rises "
        "like x far from it. Right, its slope falls from almost one at both ends to zero in the middle.",
        side=2,
    )


@cache
def random_branches():
    """One matrix for each of eight seeds, (seeds, d, d)."""
    return signal.weights("xavier", 1, d=64, seeds=range(8))[0].numpy()


@cache
def stretch():
    """The singular values of a random branch, and of blocks with it, (seeds, d)."""
    W = random_branches()
    maps = {"W": W, "I + W": np.eye(64) + W, "I + W/√32": np.eye(64) + W / np.sqrt(32)}
    return {name: np.linalg.svd(matrices, compute_uv=False) for name, matrices in maps.items()}


def prove_directions_can_vanish():
    """Prove claim 02-directions-can-vanish."""
    say("sv_smallest", stretch()["I + W"].min(axis=1).mean(), ".2f")
    say("sv_below_1", 100 * (stretch()["I + W"] < 1).mean(), ".0f")
    say("sv_scaled_smallest", stretch()["I + W/√32"].min(), ".2f")
    below_1 = (stretch()["I + W"] < 1).mean(axis=1)  # (seeds,)
    assert 0.3 < below_1.min() < below_1.max() < 0.5
    assert stretch()["I + W"].min(axis=1).max() < 0.2
    assert stretch()["I + W/√32"].min() > 0.7


def draw_directions():
    W, d = random_branches(), 64
    ordered = np.arange(1, d + 1)
    sizes = np.linalg.norm(W, ord=2, axis=(1, 2))  # (seeds,), the norm of W

    def frame(n):
        values = np.linalg.svd(np.eye(d) + W / np.sqrt(n), compute_uv=False)
        bound = (1 - sizes / np.sqrt(n)).min()
        worst = values.min()
        promise = f"At least {live.number(bound)} is" if bound > 0 else "Nothing is"
        return (
            f"With the branch divided by √{n}, the worst direction of all eight seeds"
            f" keeps {live.number(worst)} of the gradient. {promise} guaranteed.",
            [
                {
                    "map": (ordered[::3], values[:, ::3]),
                    "one": (ordered[[0, -1]], np.ones(2)),
                    "floor": (ordered[[0, -1]], np.full(2, max(bound, 0))),
                }
            ],
        )

    live.chart(
        "directions",
        "The 64 singular values of I + W/√n in falling order: the median of eight"
        " seeds, and a band from the smallest to the largest",
        [live.slider("n", "branch divided by √n", [1, 2, 4, 8, 16, 32, 64], 1)],
        [
            live.Lines(
                live.Axis("singular value, in order"),
                live.Axis("factor", limits=(0, 3)),
                {
                    "map": live.Curve("I + W/√n", figures.ORANGE),
                    "one": live.Curve("unchanged", figures.GREY, ":"),
                    "floor": live.Curve("guaranteed", figures.BLUE, "--"),
                },
                height=240,
            )
        ],
        frame,
        alt="The singular values of I + W in falling order, with the spread over eight seeds. They begin "
        "between two and three, cross the line of one after rather more than half of them, and end near "
        "zero. The line of what is guaranteed lies at zero.",
    )


def prove_small_branch_guarantee():
    """Prove claim 02-small-branch-guarantee."""
    bound = stretch()["W"].max(axis=1) / np.sqrt(32)  # (seeds,), the norm of J
    values = stretch()["I + W/√32"]  # (seeds, d)

    assert (bound < 1).all()
    assert (values.min(axis=1) >= 1 - bound).all()
    assert (values.max(axis=1) <= 1 + bound).all()


def product(plain, J, depth):
    x = y = torch.ones((), dtype=torch.float64, requires_grad=True)
    for _ in range(depth):
        y = J * y if plain else st.residual(y, lambda y: J * y)
    return torch.autograd.grad(y, x)[0].item()


@cache
def products():
    """The product of 10, 50 and 100 factors, by stack."""
    stacks = {  # plain or not, J at a depth
        "plain, J = 0.9": (True, lambda depth: 0.9),
        "residual, J = 0.9": (False, lambda depth: 0.9),
        "residual, J = 0.1": (False, lambda depth: 0.1),
        "residual, J = −0.1": (False, lambda depth: -0.1),
        "residual, J = 1/L": (False, lambda depth: 1 / depth),
    }
    return {
        name: np.array([product(plain, J(depth), depth) for depth in (10, 50, 100)])
        for name, (plain, J) in stacks.items()
    }


def tabulate_products():
    table(
        ["", "L = 10", "L = 50", "L = 100"],
        [[name, *(f"{p:.3g}" for p in row)] for name, row in products().items()],
    )


def prove_product_depends_on_the_branch():
    """Prove claim 02-product-depends-on-the-branch."""
    vanishing = products()["plain, J = 0.9"]
    assert np.allclose(products()["residual, J = −0.1"], vanishing, rtol=1e-12, atol=0)
    assert vanishing[-1] < 1e-4 < 1e4 < products()["residual, J = 0.1"][-1]
    assert products()["residual, J = 1/L"].max() < np.e


@cache
def pre_ln(init):
    """The mean square of the stream, (seeds, L + 1)."""
    return signal.propagate("pre", init, L).signal


def draw_stream_growth():
    live.sketch(
        "stream-growth",
        "The mean square of a Pre-LN stream, block by block",
        live.Axis("block", limits=(0, 32)),
        live.Axis("mean square", limits=(0, 100)),
        (LAYERS[::2], pre_ln("he")[:, ::2]),
        [0, 4, 8, 16, 24, 32],
        "The mean square of the stream against the block. It rises as a straight line from one to about "
        "one for each block; the eight stacks hardly differ.",
    )


def prove_stream_doubles():
    """Prove claims 02-stream-doubles, 02-stream-bounded, 02-stream-linear."""
    for init in signal.INITS:
        g = signal.gain(init)
        residual, scaled = (propagate(init, name).signal for name in ("residual", "scaled"))
        per_block = np.exp(np.log(residual[:, -1]).mean() / L)
        assert abs(per_block / (1 + g) - 1) < 0.03
        for measured, law in (
            (scaled, (1 + g / L) ** LAYERS),
            (pre_ln(init), 1 + g * LAYERS),
        ):
            np.testing.assert_allclose(measured.mean(axis=0), law, rtol=0.05)
        if init == "he":
            assert scaled.mean(axis=0).max() < np.e
            say("residual_factor", per_block, ".2f")
            say("pre_end", pre_ln(init)[:, -1].mean(), ".0f")
            say("scaled_end", scaled[:, -1].mean(), ".1f")


def draw_streams():
    curves = {
        "residual": live.Curve("x + F(x)", **figures.LOOKS["residual"]),
        "pre": live.Curve("x + F(LN(x))", **figures.LOOKS["pre"]),
        "scaled": live.Curve("x + F(x)/√L", figures.PINK, "-."),
        "theory": live.Curve("theory", figures.BLACK, marks="only"),
    }

    def frame(init):
        g, at, few = signal.gain(init), LAYERS[::2], LAYERS[::4]
        grown = {  # measured (seeds, L + 1), expected (L + 1,)
            "residual": (propagate(init, "residual").signal, (1 + g) ** LAYERS),
            "pre": (pre_ln(init), 1 + g * LAYERS),
            "scaled": (propagate(init, "scaled").signal, (1 + g / L) ** LAYERS),
        }
        panel = {name: (at, values[:, at]) for name, (values, _) in grown.items()}
        panel["theory"] = (np.tile(few, 3), np.concatenate([law[few] for _, law in grown.values()]))
        ends = [live.number(np.median(v[:, -1])) for v, _ in grown.values()]
        return (
            f"With g = {live.number(g)}, the mean square after 32 blocks is {ends[0]}"
            f" for x + F(x), {ends[1]} for Pre-LN, and {ends[2]} for x + F(x)/√L.",
            [panel, panel],
        )

    live.chart(
        "stream",
        "The mean square of the stream, block by block: the median of eight"
        " stacks, and a band from the smallest to the largest",
        [live.choice("init", "init", INITS, "he")],
        [
            live.Lines(
                live.Axis("block", limits=(0, L)),
                live.Axis(label, log=log, limits=limits),
                curves,
                height=260,
            )
            for label, log, limits in (
                ("mean square", True, (1, 1e10)),
                ("the lower part, linear axis", False, (0, 40)),
            )
        ],
        frame,
        alt="Mean square of the stream against the block, with the spread of eight seeds. On a logarithmic "
        "axis x + F(x) rises as a straight line over more than nine orders of magnitude. On a linear axis "
        "Pre-LN rises as a straight line to about one for each block, and the scaled stack stays below "
        "three. The dots of the theory lie on the curves.",
        side=2,
    )


@cache
def written(blocks, scaled):
    """The mean square of what all branches write together, (seeds,)."""
    return gpt2_init.written(blocks, scaled)


def tabulate_gpt2_scale():
    table(
        ["blocks L", "unscaled", "scaled by 1/√(2L)"],
        [[n, *(report.interval(written(n, scaled), ".4f") for scaled in (False, True))] for n in (4, 12, 24)],
    )


def prove_gpt2_scale_fixes_the_size():
    """Prove claims 02-gpt2-scale-fixes-the-size, 02-input-share."""
    unscaled, scaled = (written(24, s).mean() / written(4, s).mean() for s in (False, True))
    say("gpt2_unscaled", unscaled, ".1f")
    say("gpt2_scaled", scaled, ".1f")
    assert written(4, False).max() < 0.5 * written(12, False).min()
    assert abs(unscaled - 24 / 4) < 0.6
    assert abs(scaled - 1) < 0.1

    small = 0.02**2 + 0.01**2  # GPT-2's embeddings of tokens and positions
    wide = gpt2_init.written(2, True, d_model=768, seeds=range(3), input_std=np.sqrt(small))
    share = small / (small + wide)  # of the input, in the stream at the end
    assert 0.003 < share.min() < share.max() < 0.006
    say("input_share", 100 * share.mean(), ".1f")


def draw_ends(stream, scaled_stream):
    """Two answers of sheet 01 on random matrices: without and with the scale."""
    width, depths = 64, [1, 2, 4, 8, 16, 32, 64]

    def end(scaled, depth, seed):
        """Mean square at the end of a stack, from 1 at its start."""
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((64, width))
        weights = rng.normal(0, width**-0.5, (depth, width, width))
        branches = [lambda h, w=w: h @ w for w in weights]
        y = scaled_stream(x, branches) if scaled else stream(x, branches)[-1]
        return (y**2).mean() / (x**2).mean()

    fig, ax = plt.subplots()
    for scaled, name, line, color in ((False, "unscaled", "--", figures.ORANGE), (True, "scaled", "-", figures.GREEN)):
        ends = np.array([[end(scaled, depth, seed) for depth in depths] for seed in range(5)])
        ax.fill_between(depths, ends.min(0), ends.max(0), color=color, alpha=0.25)
        ax.plot(depths, ends.mean(0), line, color=color)
        figures.name_curve(ax, name, depths, ends.mean(0), color)
    assert ends.mean(0).max() < np.e
    figures.title(fig, "Scaled, the stream stays below e for 64 sublayers", ends.mean(0).max() < np.e)
    ax.axhline(np.e, **figures.LOOKS["theory"])
    figures.name_curve(ax, "e", depths, np.full(len(depths), np.e))
    ax.set(xscale="log", yscale="log", ylim=(0.8, 1e4), xlabel="sublayers N", ylabel="mean square at the end")
    ax.set_xticks(depths, depths)
    ax.minorticks_off()
    figures.show(
        fig,
        alt="Mean square at the end of the stack against the number of sublayers, on logarithmic axes. The unscaled "
        "curve bends upwards and leaves the picture between 8 and 16 sublayers. The scaled curve rises a little and "
        "stays just under the dotted line at e.",
    )


def drift(trace):
    """The mean in standard deviations, (seeds, L + 1)."""
    return trace.mean / np.sqrt(trace.signal - trace.mean**2)


def prove_relu_branch_breaks_the_law():
    """Prove claims 02-relu-branch-breaks-the-law, 02-mean-drifts."""
    rectified = signal.propagate("residual", "he", L, 1 / np.sqrt(L), ends_in_relu=True)
    mean, linear = drift(rectified), drift(propagate("he", "scaled"))
    say_interval("relu", rectified.signal[:, -1], ".0f")
    say_interval("mean_first", mean[:, 1], ".2f")
    say_interval("mean_last", mean[:, -1], ".1f")
    assert rectified.signal[:, -1].min() > 20 * np.e
    assert (np.diff(rectified.mean) > 0).all()  # with every block, every seed
    assert np.abs(linear).max() < 0.15 < 2 < mean[:, -1].min()


def draw_residual_stream():
    figures.show(
        diagrams.residual_stream(),
        narrow=diagrams.residual_stream(lines=2),
        alt="A straight line from x0 to x4 with four plus signs on it. Below it hang four boxes: attention, "
        "feed-forward, attention, feed-forward. From the line an arrow marked read goes down into each "
        "box, and an arrow marked add goes up from each box to the next plus sign.",
    )


def without_skip(x, sublayer, norm):
    return sublayer(norm(x))


SUBLAYERS = [f"{k} {n}" for n in range(1, 6) for k in ("attention", "feed-forward")]


@cache
def whole():
    """The losses of the trained model, (texts,)."""
    return stories.losses(stories.load(), stories.texts())


@cache
def broken(place):
    """Its losses with another placement at one sublayer, (10, texts)."""
    model, texts = stories.load(), stories.texts()
    models = [stories.altered(model, place=place, at=[k]) for k in range(10)]
    return np.array([stories.losses(one, texts) for one in models])


def draw_broken():
    model = stories.load()
    cut, bare = broken(stories.leave_out), broken(without_skip)

    def frame(gone):
        place, losses = gone
        rows = []
        for k, loss in enumerate(losses.mean(axis=1)):
            story = stories.generate(stories.altered(model, place=place, at=[k]), tokens=16).strip()[:20] + "…"
            rows.append((SUBLAYERS[k], story, loss, loss < np.log(512)))
        low, high = (live.number(v) for v in np.sort(losses.mean(axis=1))[[0, -1]])
        return (
            f"The loss is {low} to {high} nats. The whole model has a loss of"
            f" {live.number(whole().mean())}, and guessing costs {live.number(np.log(512))}.",
            [rows],
        )

    live.chart(
        "broken",
        "How the story begins without one sublayer, or without one skip. The bars"
        " show the mean loss of twelve texts; ✓ means better than guessing",
        [
            live.choice(
                "gone",
                "take away",
                {
                    "the sublayer": (stories.leave_out, cut),
                    "its skip": (without_skip, bare),
                },
                (stories.leave_out, cut),
            )
        ],
        [live.Bars("without …", 10, full=10)],
        frame,
        alt="Ten bars, the loss of the model without one sublayer each, with the first words that it then "
        "says. All bars are short and have a check mark, and nearly all begin with once upon.",
    )


def prove_trained_leave_one_out():
    """Prove claim 02-trained-leave-one-out."""
    model = stories.load()
    cut, bare = broken(stories.leave_out), broken(without_skip)
    say("trained_whole", whole().mean(), ".2f")
    say("cut_low", cut.mean(axis=1).min(), ".2f")
    say("cut_high", cut.mean(axis=1).max(), ".2f")
    say("bare_low", bare.mean(axis=1).min(), ".1f")
    say("bare_high", bare.mean(axis=1).max(), ".1f")
    assert (cut > whole()).all()
    assert cut.max() < np.log(512)  # better than guessing
    stutters = stories.altered(model, place=stories.leave_out, at=[9])
    assert "upon upon upon" in stories.generate(stutters, tokens=20)
    assert (bare > 1.5 * cut).all()


def network(x, matrices):
    for w in matrices:  # (d, d)
        x = st.residual(x, lambda x, w=w: w @ torch.relu(x))
    return x


def prove_paths_sum_to_the_jacobian(small, starts, products):
    """Prove claim 02-paths-sum-to-the-jacobian."""
    matrices = signal.weights("he", **small)  # (L, seeds, d, d)
    for s, start in enumerate(torch.from_numpy(starts)):
        direct = torch.autograd.functional.jacobian(partial(network, matrices=matrices[:, s]), start).numpy()
        gap = np.abs(products[:, s].sum(axis=0) - direct).max()
        assert gap < 1e-13 * np.abs(direct).max()


@cache
def path_shares():
    """By stack: the share of the mean square by path length, (L + 1, seeds), and the gain of a branch."""
    found = {}
    for name, init, scale in (
        ("He", "he", 1.0),
        ("torch default", "torch", 1.0),
        ("He, divided by √L", "he", 1 / np.sqrt(L)),
    ):
        J, _ = paths.branch_jacobians(init, L, scale, d=64)
        energy = np.square(paths.sum_by_length(J)).sum(axis=(-1, -2))
        found[name] = energy / energy.sum(axis=0), scale**2 * signal.gain(init)
    return found


def prove_short_paths():
    """Prove claim 02-short-paths."""
    mean_length = {}
    for name, (share, g) in path_shares().items():
        mean_length[name] = (LAYERS @ share).mean()
        np.testing.assert_allclose(share.mean(axis=1), paths.binomial(L, g), atol=0.035)
        assert abs(mean_length[name] - L * g / (1 + g)) < 0.5

    say("length_he", mean_length["He"], ".0f")
    say("length_torch", mean_length["torch default"], ".1f")
    say("length_scaled", mean_length["He, divided by √L"], ".1f")


LEAST_SHARE = 0.002  # smaller shares would be a row of marks on the axis


def draw_path_lengths():
    fig, ax = plt.subplots(figsize=(6.4, 3.0))
    marks = [("s", figures.GREEN), ("^", figures.ORANGE), ("o", figures.PINK)]
    for (name, (share, g)), (mark, color) in zip(path_shares().items(), marks, strict=True):
        mean = share.mean(axis=1)
        spread = np.stack([mean - share.min(axis=1), share.max(axis=1) - mean])
        drawn = mean > LEAST_SHARE
        ax.errorbar(
            LAYERS[drawn],
            mean[drawn],
            spread[:, drawn],
            fmt=mark,
            color=color,
            linewidth=1,
        )
        ax.plot(LAYERS, paths.binomial(L, g), **figures.LOOKS["theory"])
        figures.name_curve(ax, name, LAYERS[drawn], share.max(axis=1)[drawn], color)
    figures.name(ax, "dotted: binomial", (21, 0.04), shift=(8, 6))
    short = 100 * path_shares()["He, divided by √L"][0][:3].sum(0).mean()
    figures.title(fig, f"Divided by √L, paths through two branches or fewer carry {short:.0f}\N{NO-BREAK SPACE}%")
    ax.set(xlabel="branches on the path", xlim=(-1, L + 1), ylim=(0, None), yticks=(0, 0.2, 0.4))
    ax.set_ylabel(f"share of the mean square, if above {LEAST_SHARE:g}")
    figures.show(
        fig,
        alt="Share of the gradient's mean square against path length, for three stacks of 32 blocks. Divided "
        "by root L: nearly all at zero, one and two branches. Torch default: a hump around four or five. "
        "He: a wide hump around sixteen. The dotted binomial distributions pass through the markers.",
    )


@cache
def lesions(stack, depth):
    """The loss of a whole stack, (seeds,), and without each block, (depth, seeds)."""
    return degradation.leave_one_out(stack, "he", depth)


def tabulate_lesions():
    rows = []
    for stack, depth in (("plain", 20), ("residual", 20), ("residual", 10)):
        entire, lesioned = lesions(stack, depth)
        columns = (entire, np.median(lesioned, axis=0), lesioned.max(axis=0))
        rows.append([f"{stack}, {depth} blocks", *map(report.interval, columns)])
    table(["stack", "whole", "without the median block", "without the worst"], rows)


def prove_leave_one_out():
    """Prove claim 02-leave-one-out."""
    entire, lesioned = lesions("plain", 20)
    assert entire.max() < 0.6
    assert np.median(lesioned, axis=0).min() > 1
    assert (lesioned > 1).mean() > 0.7
    entire, lesioned = lesions("residual", 20)
    assert lesioned.max() < 1
    assert np.median(lesioned, axis=0).max() < 0.6
    assert np.median(lesioned, axis=0).mean() < np.median(lesions("residual", 10)[1], axis=0).mean()
    say("lesion_whole", entire.mean(), ".2f", noise=1e-3)
    say("lesion_cut", np.median(lesioned, axis=0).mean(), ".2f", noise=1e-3)


def prove_lens_repeats_first():
    """Prove claims 02-lens-repeats-first, 02-lens-comes-late."""
    texts = stories.texts()
    lens = [would_say(text) for text in texts]
    early = np.array(  # loss, (texts, 6)
        [-np.log(p[:, np.arange(len(t) - 1), t[1:]]).mean(axis=-1) for p, t in zip(lens, texts, strict=True)]
    )
    np.testing.assert_allclose(early[:, -1], whole(), rtol=1e-12)
    say("lens_0", early[:, 0].mean(), ".0f")
    say("lens_1", early[:, 1].mean(), ".0f")
    say("lens_3", early[:, 3].mean(), ".1f")
    assert early[:, :2].min() > np.log(512) > early[:, 3:].max()
    for p, t in zip(lens, texts, strict=True):
        assert (p[0].argmax(axis=-1) == t).all()  # it repeats what it read
    same = [(p.argmax(axis=-1) == p[-1].argmax(axis=-1)).mean(axis=-1) for p in lens]
    agree = np.array(same)  # (texts, 6)
    say("agree_3", 100 * agree[:, 3].mean(), ".0f")
    say("agree_4", 100 * agree[:, 4].mean(), ".0f")
    assert (np.diff(agree[:, 1:]) > 0).all()


@cache
def contributions(shares):
    """Shares of the logit that wins, mean over the tokens, (texts, 11); and of the logits of Lily and She, (11,).

    The shares add up to the logits (claim 02-logits-add-up).
    """
    model, texts = stories.load(), stories.texts()
    wrote = []
    for text in texts:
        parts = shares(text)  # (11, T, 512)
        scores = stories.logits(model, stories.stream(model, text)[-1])
        assert np.abs(parts.sum(axis=0) - scores).max() < 1e-12
        winner = scores.argmax(axis=-1)[None, :, None]
        above = parts - parts.mean(axis=-1, keepdims=True)  # the mean of all 512
        mean = np.take_along_axis(above, winner, axis=-1).mean(axis=(1, 2))
        wrote.append(mean / mean.sum())
        if text is texts[0]:
            lily, she = (above[:, at, winner[0, at, 0]] for at in (13, 15))
    return np.array(wrote), lily, she


def prove_logits_add_up(shares):
    """Prove claim 02-logits-add-up."""
    contributions(shares)


def prove_share_is_not_need(shares):
    """Prove claim 02-share-is-not-need."""
    model, texts = stories.load(), stories.texts()
    cut = broken(stories.leave_out)
    wrote, lily, she = contributions(shares)
    say("first_writes", 100 * wrote[:, 2].mean(), ".0f")
    say("last_writes", 100 * wrote[:, 10].mean(), ".0f")
    assert wrote[:, 10].min() > 2 * wrote[:, 2].max()
    assert cut[1].mean() > cut[9].mean() > np.delete(cut, [1, 3, 9], 0).mean()
    assert cut.mean(axis=1).argmax() == 1  # feed-forward 1 is missed most
    say("lily_last", lily[-1], ".0f")
    say("lily", lily.sum(), ".0f")
    say("she_last", she[-1], ".1f")
    assert model.tokenizer.decode([texts[0][14], texts[0][16]]) == " Lily She"
    assert sorted(np.argsort(she)[-3:]) == [1, 5, 9]  # attention 1, 3 and 5


def draw_who_wrote_which_word(shares):
    _wrote, lily, she = contributions(shares)
    fig, ax = plt.subplots(figsize=(6.4, 3.8))
    rows = np.arange(11)
    for values, shift, color in ((lily, -0.2, figures.BLUE), (she, 0.2, figures.GREY)):
        ax.barh(rows + shift, values, height=0.36, color=color)
    ax.axvline(0, color=figures.BLACK, linewidth=0.8)
    figures.name(ax, "Lily", (lily[10], 9.8), figures.BLUE)
    figures.name(ax, "She", (she[1], 1.2), figures.GREY)
    part = f"{100 * lily[10] / lily.sum():.0f}\N{NO-BREAK SPACE}%"
    figures.title(fig, f"Feed-forward 5 gives Lily {part} of its logit, and lowers She's", she[10] < 0)
    ax.set(xlabel="share in the logit", xticks=(0, 5, 10), xlim=(None, 11))
    ax.set_yticks(rows, ["embedding", *SUBLAYERS])
    ax.grid(visible=False)
    ax.invert_yaxis()
    figures.show(
        fig,
        alt="Shares in two logits, a row for the embedding and each of ten sublayers. Lily is written mostly "
        "by feed-forward 5. She is written in similar parts by many, most by attention 1, 3 and 5, and "
        "feed-forward 5 counts against it.",
    )


STEPS = 250


@cache
def train(stack, init):
    """The losses of 20 blocks, (seeds, steps)."""
    return degradation.train(stack, init, 20, STEPS)


def draw_forgotten():
    ends = np.arange(20, STEPS + 1, 10)  # each the mean of the last 20 steps

    def frame(init):
        panel = {"zero": (ends[[0, -1]], np.ones(2))}
        last = {}
        for stack in ("plain", "residual"):
            losses = train(stack, init)
            smooth = [losses[:, end - 20 : end].mean(axis=1) for end in ends]
            panel[stack] = (ends, np.stack(smooth, axis=1))
            last[stack] = f"{losses[:, -50:].mean():.1f}"
        return (
            f"Over the last 50 steps, the loss is {last['plain']} without skips and {last['residual']} with skips.",
            [panel],
        )

    live.chart(
        "forgotten",
        "The loss of 20 blocks in training: median and range of five seeds",
        [live.choice("init", "init", {"torch default": "torch", "He": "he"}, "torch")],
        [
            live.Lines(
                live.Axis("step (mean of the last 20)"),
                live.Axis("loss", limits=(0, 2.5)),
                {
                    "plain": live.Curve("without skips", **figures.LOOKS["plain"]),
                    "residual": live.Curve("with skips", **figures.LOOKS["residual"]),
                    "zero": live.Curve("always answering 0", figures.BLACK),
                },
                height=260,
            )
        ],
        frame,
        alt="Loss during training of twenty blocks from torch's default init, five seeds each. The networks "
        "without skips stay about the thin line of always answering zero, all seeds alike. Those with skips "
        "start above the line and fall well below it.",
    )


def prove_forgotten_sticks():
    """Prove claim 02-forgotten-sticks."""
    forgotten = train("plain", "torch")
    final = {stack: train(stack, "torch")[:, -50:].mean(axis=1) for stack in ("plain", "residual")}
    source = torch.Generator().manual_seed(0)  # the examples of the runs
    targets = torch.stack([degradation.batch(source)[1] for _ in range(STEPS)])
    zero = targets.square().mean(dim=(1, 2)).numpy()  # (steps,)

    say("stuck", final["plain"].mean(), ".2f", noise=1e-4)
    say("always_zero", zero[-50:].mean(), ".2f")
    assert np.abs(forgotten - zero).max() < 0.05  # at every step
    assert np.abs(final["plain"] - zero[-50:].mean()).max() < 0.01
    assert final["residual"].max() < 0.6
