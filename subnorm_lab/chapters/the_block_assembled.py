"""Figures and proofs of chapter 06, The block, assembled."""

import math
import re
from functools import cache, partial
from itertools import islice

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import subnorm.numpy as sn
import subnorm.torch as st
from subnorm_lab import checks, diagrams, figures, live, stories
from subnorm_lab.chapters import begin as begin
from subnorm_lab.experiments import learning_to_write, parameters
from subnorm_lab.experiments.language_model import Characters
from subnorm_lab.experiments.stack import causal_mask, draw_weights
from subnorm_lab.report import interval, say, table
from subnorm_lab.stories import files as story_files

TASK = Characters()
recorded = cache(learning_to_write.recorded)


def generator(seed):
    return torch.Generator().manual_seed(seed)


def random(*shape, seed):
    return torch.randn(*shape, generator=generator(seed), dtype=torch.float64)


@cache
def words_read():
    """The words of the text that the small model reads."""
    return set(TASK.text.decode(TASK.text.train).split())


def real_words():
    """The share of words in a sample that occur in the text, (seeds, steps)."""
    known = words_read()
    return np.array(
        [[np.mean([w in known for w in stage["text"].split()]) for stage in run] for run in recorded()["runs"]]
    )


def first_words(text, room=34):
    """The words at the beginning of a text, as many as fit into so many letters; at least two."""
    words = text.split()
    count = next(k for k in range(2, len(words)) if len(" ".join(words[: k + 1])) > room)
    return words[:count]


def draw_writing():
    record = recorded()
    written = {step: stage["text"] for step, stage in zip(record["steps"], record["runs"][0], strict=True)}
    shares = dict(zip(record["steps"], real_words().mean(axis=0), strict=True))

    def row(step):
        return f"{step:,}", " ".join(first_words(written[step]))[:34], shares[step], False

    def writes(step):
        rows = [row(k) if k <= step else (f"{k:,}", "", 0, False) for k in written]
        return f"Step {step:,}: “{' '.join(written[step].split())[:120].strip()} …”", [rows]

    live.chart(
        "writes",
        "Three small blocks write while they learn from the Constitution, letter by letter",
        [live.slider("step", "steps of training", {f"{k:,}": k for k in written}, 1000, play=True)],
        [live.Bars("bar: share of real words in two samples", len(written))],
        writes,
        "Seven rows, one for each stage of training, with the first words that a small model writes; the bar is the "
        "share of real words in two samples of 200 letters. It is under a fifth up to step 100, a third at step 300, "
        "and three quarters at step 1000. The last two rows are still empty.",
    )


def draw_block():
    figures.show(
        diagrams.assembled_block(),
        alt="A Pre-LN block from the bottom up: x, then norm, attention, dropout and a plus sign, then norm, "
        "feed-forward, "
        "dropout and a second plus, then y. A green skip path leaves the main line before each norm and "
        "ends at the plus. "
        "Beside attention: each token reads the others. Beside the norms and feed-forward: each token on its own.",
        dpi=92,
    )


def relu(h):
    return np.maximum(h, 0)


def norm(h):
    return sn.layer_norm(h, eps=0)


SECOND_SEES_BOTH = np.array([[1.0, 0.0], [0.5, 0.5]])  # (T, T), equal shares of what a token may see
TWO_TOKENS = np.array([[2.0, 4.0, 6.0, 12.0], [12.0, 6.0, 4.0, 2.0]])  # (T, d)


def attend(h):
    return SECOND_SEES_BOTH @ h


def by_hand(pre_ln_block, post_ln_block):
    """What the two tokens are after each line of the two blocks, by name."""
    x = TWO_TOKENS
    return {
        "input": x,
        "Pre-LN: attention's edit": attend(norm(x)),
        "Pre-LN, line 1": x + attend(norm(x)),
        "Pre-LN, line 2": pre_ln_block(x, attend, relu, norm, norm),
        "Post-LN, line 1": norm(x + attend(x)),
        "Post-LN, line 2": post_ln_block(x, attend, relu, norm, norm),
    }


def prove_worked_trace(pre_ln_block, post_ln_block):
    """Prove claim 06-worked-trace."""
    tokens, edit, _, pre, post_middle, post = by_hand(pre_ln_block, post_ln_block).values()
    root = math.sqrt(14)
    np.testing.assert_allclose(edit[1] * root, [1, -1, -1, 1])
    np.testing.assert_allclose(post_middle[0] * root, [-4, -2, 0, 6], atol=1e-12)
    np.testing.assert_allclose(post_middle[1] * math.sqrt(17), [7, -1, -3, -3], atol=1e-12)
    edits = pre - tokens  # both lines of Pre-LN together
    assert np.linalg.norm(edits) < np.linalg.norm(tokens) / 4
    assert np.abs(post.mean(1)).max() < 1e-12
    np.testing.assert_allclose((post**2).mean(1), 1)


def tabulate_two_tokens(pre_ln_block, post_ln_block):
    lines = by_hand(pre_ln_block, post_ln_block).items()
    table(
        ["after", "token 1", "token 2"],
        [[name, *(", ".join(f"{v:.2f}" for v in token) for token in tokens)] for name, tokens in lines],
    )


def ours(kind, theirs, placement):
    """Our block with the weights of theirs: two names get a prefix."""
    net = kind(16, 4, 64, placement).double()
    state = theirs.state_dict().items()
    net.load_state_dict({k.replace("linear", "feed_forward.linear"): v for k, v in state})
    return net


def layer(kind, placement, seed=3):
    """One of torch.nn's layers, every parameter random."""
    net = kind(
        d_model=16,
        nhead=4,
        dim_feedforward=64,
        dropout=0,
        batch_first=True,
        norm_first=placement == "pre",
        dtype=torch.float64,
    )
    g = generator(seed)
    for p in net.parameters():
        nn.init.normal_(p, std=0.5, generator=g)
    return net


def source_tokens():
    return random(2, 7, 16, seed=4)  # (B, S, d)


def target_tokens():
    return random(2, 4, 16, seed=5)  # (B, T, d)


def prove_block_is_torch_encoder_layer(pre_ln_block, post_ln_block):
    """Prove claim 06-block-is-torch-encoder-layer."""
    source = source_tokens()
    two_lines = {"pre": pre_ln_block, "post": post_ln_block}
    for placement, lines in two_lines.items():
        theirs = layer(nn.TransformerEncoderLayer, placement)
        mine = ours(st.TransformerBlock, theirs, placement)
        modules = (mine.self_attn, mine.feed_forward, mine.norm1, mine.norm2)
        with torch.no_grad():
            expected = theirs(source)
            for y in (lines(source, *modules), mine(source)):
                assert (y - expected).abs().max() < 1e-12
        y = sn.transformer_block(source, mine.state_dict(), 4, placement)
        assert np.abs(y - expected.numpy()).max() < 1e-12
        print(f"{placement}: same as torch.nn.TransformerEncoderLayer")


TOKENS, FEATURES, HEADS = 5, 6, 2


@cache
def small_block():
    """An untrained Pre-LN block, and five tokens for it."""
    block = st.TransformerBlock(FEATURES, HEADS, 4 * FEATURES).double()
    draw_weights(block, generator(0))
    return block, random(TOKENS, FEATURES, seed=1)


@torch.no_grad()
def moves(touched, mask):
    """By how much each number after each part moves, from the tokens of the small block to the touched ones."""
    block, x = small_block()
    parts = {
        "norm": block.norm1,
        "feed-forward": block.feed_forward,
        "attention": lambda h: block.self_attn(h, mask),
        "block": lambda h: block(h, mask),
    }
    return {name: (part(touched) - part(x)).abs().numpy() for name, part in parts.items()}  # (T, d) each


PARTS = ("norm", "feed-forward", "attention", "block")


def draw_touched_token():
    _, x = small_block()
    rows = [str(t + 1) for t in range(TOKENS)]
    GRIDS = [live.Heat(name, live.Axis("feature"), rows, list("123456"), (0, 1), height=150) for name in PARTS]

    def named(hit):
        return "all" if hit == rows else ", ".join(hit) or "none"

    def frame(token, see, change):
        touched = x.clone()
        touched[token, slice(None) if change == "all" else 1] += 1
        found = moves(touched, causal_mask(TOKENS) if see == "causal" else None)
        hits = {name: [rows[t] for t in range(TOKENS) if by[t].max() > 1e-9] for name, by in found.items()}
        own, later = [rows[token]], rows[token:] if see == "causal" else rows
        norm, block = ([], own) if change == "all" else (own, later)
        assert list(hits.values()) == [norm, own, later, block]
        words = [f"{named(hit)} after {name}" for name, hit in hits.items()]
        # half the shade for any movement, the rest for how far
        shades = [np.where(by > 1e-9, 0.5 + 0.5 * by / max(by.max(), 1e-9), 0) for by in found.values()]
        return f"Tokens that move: {'; '.join(words)}.", shades

    live.chart(
        "touched",
        "One token is touched: what moves after each part of an untrained block",
        [
            live.slider("token", "token touched", {r: t for t, r in enumerate(rows)}, 2),
            live.choice("see", "mask", ["causal", "none"], "causal"),
            live.choice(
                "change",
                "add 1 to",
                {"feature 2": "one", "all features": "all"},
                "one",
            ),
        ],
        GRIDS,
        frame,
        "Four grids of five tokens by six features; the third token was touched. After the norm and "
        "after feed-forward "
        "the whole third row is filled and nothing else. After attention and after the block, rows "
        "three, four and five are filled.",
        side=4,
    )


def prove_only_attention_mixes():
    """Prove claim 06-only-attention-mixes."""
    _, x = small_block()
    see = causal_mask(TOKENS)
    touched = x.clone()
    touched[2, 1] += 1
    moved = {name: by > 1e-9 for name, by in moves(touched, see).items()}
    own_row = np.repeat(np.arange(TOKENS)[:, None] == 2, FEATURES, axis=1)
    from_here_on = np.repeat(np.arange(TOKENS)[:, None] >= 2, FEATURES, axis=1)
    np.testing.assert_array_equal(moved["norm"], own_row)
    np.testing.assert_array_equal(moved["feed-forward"], own_row)
    np.testing.assert_array_equal(moved["attention"], from_here_on)
    assert np.array_equal(moved["block"], from_here_on)
    touched = x.clone()
    touched[2] += 1  # all features alike
    shifted = moves(touched, see)
    assert shifted["norm"].max() < 1e-9
    np.testing.assert_array_equal(shifted["block"] > 1e-9, own_row)


def prove_future_changes_nothing():
    """Prove claim 06-future-changes-nothing."""
    block, x = small_block()
    params = {name: p.numpy() for name, p in block.self_attn.state_dict().items()}
    a = x.numpy()
    other_future = a.copy()
    other_future[3:] = 1000.0
    before = sn.multi_head_attention(a, params, HEADS, np.tri(TOKENS, dtype=bool))
    after = sn.multi_head_attention(other_future, params, HEADS, np.tri(TOKENS, dtype=bool))
    assert np.array_equal(before[:3], after[:3])
    assert not np.allclose(before[3:], after[3:], rtol=1e-12, atol=0)


def prove_ffn_per_token():
    """Prove claim 06-ffn-per-token."""
    block, x = small_block()
    order = torch.tensor([3, 0, 4, 1, 2])
    with torch.no_grad():
        gap = block.feed_forward(x[order]) - block.feed_forward(x)[order]
    assert gap.abs().max() < 1e-12


def prove_dropout_on_the_branch():
    """Prove claims 06-dropout-on-the-branch, 06-pytorch-drops-twice-more."""
    _, x = small_block()
    sub = st.AttentionSubLayer(FEATURES, HEADS, dropout_p=0.5).double()
    draw_weights(sub, generator(2))
    branch = (sub.eval()(x) - x).detach().numpy()  # nothing is dropped in evaluation
    torch.manual_seed(0)
    gained = (sub.train()(x) - x).detach().numpy()
    dropped = np.abs(gained) < 1e-12
    assert 0 < dropped.sum() < dropped.size
    np.testing.assert_allclose(gained[~dropped], 2 * branch[~dropped])

    builtin = nn.TransformerEncoderLayer(16, 4, dropout=0.25)
    drops = [name for name, part in builtin.named_modules() if "drop" in name]
    assert drops == ["dropout", "dropout1", "dropout2"]  # hidden, two branches
    assert builtin.self_attn.dropout == 0.25  # the attention weights


def prove_counts_gpt2(gpt):
    """Prove claim 06-counts-gpt2."""
    gpt2 = gpt(12, 768)
    published = parameters.Sizes(12, 768, 3072, 50257, 1024)
    parts = parameters.gpt2(published)
    in_blocks = sum(p.numel() for p in gpt2["blocks"].parameters())
    assert sum(p.numel() for p in gpt2.parameters()) == sum(parts.values())
    assert sum(parts.values()) == 124_439_808
    assert all(p.is_meta for p in gpt2.parameters())
    say("gpt2_blocks", 100 * in_blocks / sum(parts.values()), ".0f")


D_MODEL = 32
HEAD_STDS = {"0.02": 0.02, "1/√d": D_MODEL**-0.5, "1": 1.0}


class TinyLanguageModel(nn.Module):
    """The parts of a language model, in the order that the chapter's function gives them."""

    def __init__(self, language_model, num_blocks):
        super().__init__()
        self.language_model = language_model
        self.tokens = nn.Embedding(TASK.vocabulary, D_MODEL)
        self.positions = nn.Embedding(TASK.length, D_MODEL)
        self.blocks = nn.ModuleList(st.TransformerBlock(D_MODEL, 4, 4 * D_MODEL) for _ in range(num_blocks))
        self.final_norm = st.LayerNorm(D_MODEL)
        self.head = nn.Linear(D_MODEL, TASK.vocabulary)

    def forward(self, ids):
        return self.language_model(self, ids)


def untrained(language_model, num_blocks, seed, head_std):
    """A model with Xavier's weights, embeddings of standard deviation 1, and a head of the given one."""
    net = TinyLanguageModel(language_model, num_blocks)
    g = generator(seed)
    draw_weights(net.double(), g)
    for part, std in ((net.tokens, 1), (net.positions, 1), (net.head, head_std)):
        nn.init.normal_(part.weight, std=std, generator=g)
    return net


def loss_of(net, ids, targets):
    return F.cross_entropy(net(ids).flatten(0, 1), targets.flatten())


def above_ln_v(net):
    """How far the loss of a model on four sequences is above ln V."""
    with torch.no_grad():
        return loss_of(net, *TASK.batch(4, generator(7))).item() - math.log(TASK.vocabulary)


@cache
def starts(language_model):
    """How far the loss starts above ln V for each spread of the head, in 20 draws."""
    return {
        name: np.array([above_ln_v(untrained(language_model, 2, seed, std)) for seed in range(20)])
        for name, std in HEAD_STDS.items()
    }


def prove_loss_at_start(language_model):
    """Prove claim 06-loss-at-start."""
    small, unit, large = starts(language_model).values()
    assert np.abs(small).max() < 0.1
    assert abs(unit.mean() - 0.5) < 0.15
    assert large.min() > 5
    assert large.max() < 12
    say("vocabulary", TASK.vocabulary, ".0f")
    say("ln_v", math.log(TASK.vocabulary), ".2f")
    say("loss_at_start", small.mean() + math.log(TASK.vocabulary), ".2f")
    say("large_low", large.min(), ".0f", noise=1e-4)
    say("large_high", large.max(), ".0f", noise=1e-4)


def tabulate_loss_at_start(language_model):
    table(
        ["spread of the head", "formula", "mean", "20 seeds"],
        [
            [
                name,
                f"{D_MODEL * HEAD_STDS[name] ** 2 / 2:.1f}",
                f"{values.mean():.1f}",
                interval(values),
            ]
            for name, values in starts(language_model).items()
        ],
    )


DEPTHS = (1, 2, 4, 8, 16)


@cache
def starts_by_depth(language_model):
    """How far the loss starts above ln V with the final norm, and without it, each (seeds, depths)."""

    def with_and_without(depth, seed):
        net = untrained(language_model, depth, seed, HEAD_STDS["1/√d"])
        above = above_ln_v(net)
        net.final_norm = nn.Identity()
        return above, above_ln_v(net)

    found = np.array([[with_and_without(depth, seed) for depth in DEPTHS] for seed in range(6)])
    return found[..., 0], found[..., 1]


WITHOUT = {"color": figures.PINK, "linestyle": "-."}


def draw_final_norm(language_model):
    with_norm, without_norm = starts_by_depth(language_model)
    fig, ax = plt.subplots()
    for losses, look, name in (
        (without_norm, WITHOUT, "without the\nfinal norm"),
        (with_norm, figures.LOOKS["pre"], "with it"),
    ):
        ax.plot(DEPTHS, losses.T, linewidth=0.7, alpha=0.5, **look)
        ax.plot(DEPTHS, losses.mean(0), **look)
        figures.name_curve(ax, name, DEPTHS, losses.mean(0), look["color"])
    ax.axhline(0.5, **figures.LOOKS["theory"])
    figures.name_ends(ax, [("the formula,\none half", (DEPTHS[-1], 0.5), figures.BLACK)])
    rises = (np.diff(without_norm.mean(0)) > 0).all()
    figures.title(fig, "Without the final norm, deeper models start worse", rises)
    ax.set(xlabel="blocks", ylabel="loss above ln V (nats)", xticks=DEPTHS, yticks=(0, 2, 4))
    ax.set(xlim=(0, DEPTHS[-1]), ylim=0)
    figures.show(
        fig,
        alt="How far an untrained Pre-LN language model's loss lies above ln V, against the number of blocks, "
        "six seeds. "
        "With the final norm the curve stays close to a dotted line at one half. Without it the curve "
        "starts higher and "
        "rises steadily with depth.",
    )


def prove_final_norm_and_depth(language_model):
    """Prove claim 06-final-norm-and-depth."""
    with_norm, without_norm = starts_by_depth(language_model)
    assert np.abs(with_norm.mean(0) - 0.5).max() < 0.2
    assert (without_norm[:, -1] - without_norm[:, 0]).min() > 1
    say("start_without", without_norm[:, -1].mean(), ".0f", noise=1e-4)


def draw_encoder_and_decoder():
    figures.show(
        diagrams.encoder_decoder(),
        alt="Two blocks from the bottom up. Left the encoder: attention, plus, norm, feed-forward, plus, norm. "
        "Right the "
        "decoder: masked attention, plus, norm, cross-attention, plus, norm, feed-forward, plus, norm. "
        "Every sublayer has a "
        "skip path to its plus. An arrow named memory, keys and values, leads from the top of the encoder into "
        "the decoder's cross-attention.",
    )


def prove_decoder_is_torch_decoder_layer(pre_ln_decoder, post_ln_decoder):
    """Prove claim 06-decoder-is-torch-decoder-layer."""
    source, target = source_tokens(), target_tokens()
    causal = causal_mask(4)
    three_lines = {"pre": pre_ln_decoder, "post": post_ln_decoder}
    for placement, lines in three_lines.items():
        theirs = layer(nn.TransformerDecoderLayer, placement)
        mine = ours(st.DecoderBlock, theirs, placement)
        with torch.no_grad():
            expected = theirs(target, source, tgt_mask=~causal)  # True blocks
            by_hand = lines(
                target,
                source,
                lambda h, m=mine: m.self_attn(h, causal),
                lambda h, memory, m=mine: m.multihead_attn(h, memory=memory),
                mine.feed_forward,
                [mine.norm1, mine.norm2, mine.norm3],
            )
            for y in (by_hand, mine(target, source, causal)):
                assert (y - expected).abs().max() < 1e-12
        params = mine.state_dict()
        y = sn.decoder_block(target, source, params, 4, placement, mask=causal)
        assert np.abs(y - expected.numpy()).max() < 1e-12
        print(f"{placement}: same as torch.nn.TransformerDecoderLayer")


def build_translator():
    """A Pre-LN encoder and decoder of two blocks each as one function, and tokens to translate."""
    causal = causal_mask(4)
    encoder = [layer(nn.TransformerEncoderLayer, "pre", s) for s in (6, 7)]
    decoder = [layer(nn.TransformerDecoderLayer, "pre", s) for s in (8, 9)]
    encoder = [ours(st.TransformerBlock, net, "pre") for net in encoder]
    decoder = [ours(st.DecoderBlock, net, "pre") for net in decoder]
    encoder_norm, decoder_norm = (st.LayerNorm(16).double() for _ in range(2))

    @torch.no_grad()
    def translate(source, target):
        memory = source
        for block in encoder:
            memory = block(memory)
        memory = encoder_norm(memory)
        x = target
        for block in decoder:
            x = block(x, memory, causal)
        return decoder_norm(x)

    return translate, source_tokens(), target_tokens()


def prove_decoder_sees_all_source(outputs_moved, source, target):
    """Prove claims 06-decoder-sees-all-source, 06-decoder-sees-no-future."""
    assert outputs_moved(source).all()
    assert np.array_equal(outputs_moved(target), np.triu(np.ones((4, 4))))


def norms_in(net):
    return sum(isinstance(part, nn.LayerNorm) for part in net.modules())


def prove_norm_counts():
    """Prove claim 06-norm-counts."""

    def encoder_stack(num_blocks, norm=None):
        return nn.TransformerEncoder(
            layer(nn.TransformerEncoderLayer, "pre"),
            num_blocks,
            norm=norm,
            enable_nested_tensor=False,
        )

    def decoder_stack(num_blocks, norm=None):
        net = layer(nn.TransformerDecoderLayer, "pre")
        return nn.TransformerDecoder(net, num_blocks, norm=norm)

    for num_blocks in (1, 2, 6):
        assert norms_in(encoder_stack(num_blocks)) == 2 * num_blocks
        assert norms_in(decoder_stack(num_blocks)) == 3 * num_blocks
        final = nn.LayerNorm(16)
        assert norms_in(encoder_stack(num_blocks, final)) == 2 * num_blocks + 1
        assert norms_in(decoder_stack(num_blocks, final)) == 3 * num_blocks + 1
    assert encoder_stack(2).norm is None


def prove_post_ln_needs_no_final_norm():
    """Prove claim 06-post-ln-needs-no-final-norm."""
    source = source_tokens()
    whole = nn.Transformer(16, 4, 2, 2, 64, dropout=0, batch_first=True, dtype=torch.float64)
    assert not whole.encoder.layers[0].norm_first
    assert norms_in(whole.encoder) == 2 * 2 + 1
    assert norms_in(whole.decoder) == 3 * 2 + 1
    with torch.no_grad():
        with_it = whole.encoder(source)
        whole.encoder.norm = None
        gap = (whole.encoder(source) - with_it).abs().max()
    assert gap < 1e-4


@cache
def trained(language_model, training_step, lr):
    """The training losses of five seeds, (seeds, steps)."""

    def train(seed):
        net = untrained(language_model, 2, seed, head_std=0.02)
        data = generator(100 + seed)
        return [training_step(net, *TASK.batch(8, data), lr) for _ in range(30)]

    return np.array([train(seed) for seed in range(5)])


def draw_training(language_model, training_step, lr):
    curves = trained(language_model, training_step, lr)
    fig, ax = plt.subplots()
    ax.plot(curves.T, linewidth=0.7, alpha=0.5, **figures.LOOKS["pre"])
    ax.plot(curves.mean(0), **figures.LOOKS["pre"])
    last = curves.shape[1] - 1
    levels = {"ln V": math.log(TASK.vocabulary), "characters'\nfrequencies": TASK.chance}
    for height in levels.values():
        ax.axhline(height, **figures.LOOKS["theory"])
    ends = [(words, (last, height), figures.BLACK) for words, height in levels.items()]
    figures.name_ends(ax, [*ends, ("mean of\n5 seeds", (last, curves.mean(0)[-1]), figures.BLUE)])
    ax.set(xlabel="training step", ylabel="training loss (nats)", xlim=(0, last), xticks=(0, 10, 20, last))
    ax.set_yticks((3, 3.5, 4))
    beats = "beats" if curves[:, -1].max() < TASK.chance else "does not beat"
    figures.title(fig, f"In {curves.shape[1]} steps the model {beats} the characters' frequencies")
    figures.show(
        fig,
        alt="Training loss of the tiny language model against the step, five seeds and their mean. All start "
        "at the dotted "
        "line at ln V, fall quickly, cross the second dotted line, the loss of character frequencies, "
        "within about 20 steps, and go on falling.",
    )
    return curves


def prove_tiny_model_learns(language_model, training_step):
    """Prove claim 06-tiny-model-learns."""
    curves = trained(language_model, training_step, 1.0)
    end = curves[:, -5:].mean(1)
    assert np.abs(curves[:, 0] - math.log(TASK.vocabulary)).max() < 0.1
    assert end.max() < TASK.chance - 0.1
    say("end_low", end.min(), ".1f")
    say("end_high", end.max(), ".1f")


@cache
def begin_to_learn():
    """The stages of a run up to step 100, as in the record."""
    return list(islice(learning_to_write.stages(seed=0), 3))


def of_both(losses):
    return ", ".join(sorted({f"{loss:.1f}" for loss in losses}))


def tabulate_stages():
    record = recorded()
    table(
        ["step", "loss", "held out", "what it writes"],
        [
            [
                step,
                of_both(record["training"][:, k]),
                of_both(record["held_back"][:, k]),
                " ".join(record["runs"][0][k]["text"].split())[:60].strip(),
            ]
            for k, step in enumerate(record["steps"])
            if k >= len(begin_to_learn())
        ],
    )


def prove_loss_as_text():
    """Prove claims 06-loss-as-text, 06-learns-by-heart."""
    record, beginning = recorded(), begin_to_learn()
    # the record is the run that this page has just begun
    for now, then in zip(beginning, record["runs"][0], strict=False):
        assert now["text"] == then["text"]
        assert abs(now["training"] - then["training"]) < 1e-3
        assert abs(now["held_back"] - then["held_back"]) < 1e-3
    words = real_words()
    assert (np.diff(record["training"]) < 0).all()
    assert (words[:, -1] > words[:, 1] + 0.2).all()
    held_back = record["held_back"]
    assert (held_back.argmin(1) == record["steps"].index(3000)).all()
    assert (held_back[:, -1] > held_back.min(1) + 0.1).all()
    say("words_30", 100 * words[:, 1].mean(), ".0f")
    say("words_6000", 100 * words[:, -1].mean(), ".0f")
    say("training_end", record["training"][:, -1].mean(), ".1f")
    say("held_back_least", held_back.min(1).mean(), ".1f")
    say("held_back_end", held_back[:, -1].mean(), ".1f")
    assert abs(beginning[0]["training"] - math.log(TASK.vocabulary) - 0.5) < 0.1


def stack_of_two(lines, final, random_weights):
    """The stack as a function, and PyTorch's with the same weights."""
    net = layer(nn.TransformerEncoderLayer, "pre")
    theirs = nn.TransformerEncoder(net, 2, norm=nn.LayerNorm(16).double(), enable_nested_tensor=False)
    g = generator(10)
    for part in theirs.modules():
        if isinstance(part, nn.LayerNorm) and not random_weights:
            part.reset_parameters()
        elif random_weights:
            for p in part.parameters(recurse=False):
                nn.init.normal_(p, generator=g)
    blocks = nn.ModuleList(ours(st.TransformerBlock, part, "pre") for part in theirs.layers)
    last = theirs.norm if final else nn.Identity()

    def forward(x):
        for b in blocks:
            x = lines(x, b.self_attn, b.feed_forward, b.norm1, b.norm2)
        return last(x)

    return forward, theirs, nn.ModuleList([blocks, last])


def agrees(lines, final, random_weights):
    forward, theirs, _ = stack_of_two(lines, final, random_weights)
    source = source_tokens()
    with torch.no_grad():
        return bool((forward(source) - theirs(source)).abs().max() < 1e-9)


def silent_is_identity(lines):
    def silent(h):
        return 0 * h

    norms = [nn.LayerNorm(16).double() for _ in range(2)]
    source = source_tokens()
    return bool((lines(source, silent, silent, *norms) - source).abs().max() < 1e-9)


def all_get_gradients(lines, final):
    forward, _, parameters = stack_of_two(lines, final, True)
    y = forward(source_tokens())
    (y * random(*y.shape, seed=11)).sum().backward()
    return all(p.grad is not None for p in parameters.parameters())


def verdicts(stacks):
    """Whether each stack passes the four checks, by name."""
    return {
        name: [
            agrees(lines, final, random_weights=False),
            agrees(lines, final, random_weights=True),
            silent_is_identity(lines),
            all_get_gradients(lines, final),
        ]
        for name, (lines, final) in stacks.items()
    }


WORDS = {  # by whether the stack is right, and whether it passes
    (True, True): "passes",
    (True, False): "false alarm",
    (False, True): "missed",
    (False, False): "**caught**",
}


def tabulate_four_checks(stacks):
    table(
        [
            "",
            "norms fresh",
            "norms random",
            "silent",
            "gradient",
        ],
        [[name, *(WORDS[name == "right", v] for v in row)] for name, row in verdicts(stacks).items()],
    )


def prove_fresh_weights_hide(stacks):
    """Prove claim 06-fresh-weights-hide."""
    assert verdicts(stacks) == {
        "right": [True, True, True, True],
        "norm on the skip path": [False, False, False, True],
        "first norm twice": [True, False, True, False],
        "no final norm": [False, False, True, True],
    }


def swiglu(h, w):
    gate = h @ w["gate"].T  # (T, 172)
    return (gate / (1 + np.exp(-gate)) * (h @ w["up"].T)) @ w["down"].T


def rotary(x):  # (heads, T, 8), pairs of features as complex numbers
    angle = np.arange(x.shape[1])[:, None] / 10000 ** (np.arange(4) / 4)
    pair = (x[..., ::2] + 1j * x[..., 1::2]) * np.exp(1j * angle)
    return np.stack([pair.real, pair.imag], axis=-1).reshape(x.shape)


def self_attention(h, w):
    split = [(h @ w[name].T).reshape(len(h), -1, 8) for name in "qkv"]
    q, k, v = (np.swapaxes(part, 0, 1) for part in split)  # 8, 4, 4 heads
    k, v = (np.repeat(part, 2, axis=0) for part in (rotary(k), v))
    y = sn.attention(rotary(q), k, v, np.tri(len(h), dtype=bool))
    return np.swapaxes(y, 0, 1).reshape(h.shape) @ w["o"].T


def load_trained(pre_ln_block):
    model = stories.load()

    def scores(tokens, lines=pre_ln_block, final=True):
        y = model.embedding[tokens]  # (T, d)
        for k in range(0, 10, 2):
            branches = zip((self_attention, swiglu), model.weights[k:], strict=False)
            attend, feed = (partial(branch, w=w) for branch, w in branches)
            norms = (partial(sn.rms_norm, gamma=g) for g in model.gains[k : k + 2])
            y = lines(y, attend, feed, *norms)
        y = sn.rms_norm(y, model.gains[10]) if final else y
        return y @ model.embedding.T  # (T, V)

    return model, scores


def losses_on_texts(scores, stacks):
    """The loss of each stack of the trained model on each of the twelve texts, by name."""

    def nats(tokens, *stack):
        z = torch.from_numpy(scores(tokens[:-1], *stack))
        return F.cross_entropy(z, torch.tensor(tokens[1:])).item()

    texts = stories.texts()
    return {name: np.array([nats(text, *stack) for text in texts]) for name, stack in stacks.items()}


def tabulate_stories(tell, found, stacks):
    table(
        ["", "loss (nats)", "its story begins"],
        [
            [
                name,
                f"{losses.mean():.1f}",
                " ".join(tell(24, *stacks[name]).split())[:64].strip(),
            ]
            for name, losses in found.items()
        ],
    )


def prove_tells_the_story(story, tell, found, pre_ln_block):
    """Prove claims 06-tells-the-story, 06-trained-mistakes."""
    assert len(story) > 300
    assert story_files.published()[0].startswith(story)
    right, on_skip, twice, no_final = found.values()
    model = stories.load()
    np.testing.assert_allclose(right, stories.losses(model, stories.texts()), rtol=1e-9)
    assert min(on_skip.mean(), twice.mean()) > 6
    assert (no_final > right).all()
    assert (no_final < right + 0.3).all()
    other = tell(48, pre_ln_block, False).split()
    same = [a == b for a, b in zip(story.split(), other, strict=False)]
    assert 10 < same.index(False) < len(other) - 1  # a whole word
    say("same_words", same.index(False), ".0f")
    say("guessing", math.log(512), ".1f")


def check_quick_checks(language_model):
    six = TinyLanguageModel(language_model, 6)
    assert sum(isinstance(m, st.LayerNorm) for m in six.modules()) == 13
    block, x = small_block()
    long = torch.cat([x, torch.zeros(100, x.shape[1], dtype=torch.float64)])
    with torch.no_grad():
        short, padded = (block(h, causal_mask(len(h))) for h in (x, long))
    assert (padded[: len(x)] - short).abs().max() < 1e-12


def tabulate_mistakes():
    """What the trained model says with some of the mistakes that the checks of sheet 06 know."""
    picked = {
        "norm": ["eps_outside", "no_gamma", "axis0"],
        "head": ["no_mask", "no_scale", "zero_mask"],
        "swiglu": ["gate_and_up_swapped", "gelu"],
        "story_block": ["post_ln", "normed_skip", "no_norms"],
        "next_scores": ["no_final_norm", "first_token"],
        "tell": ["only_last"],
    }
    rows = []
    for name, tags in picked.items():
        exercise = getattr(checks, name)
        answers = {mistake.tag: mistake.answer for mistake in exercise.mistakes}
        for tag in tags:
            said = exercise.speaks(name, answers[tag])
            said = re.sub(r"(\w{9})(?=\w)", "\\1\u200b", said)  # a line may break inside a long non-word
            rows.append([f"{name}: {tag}".replace("_", " "), said])
    table(["mistake", "what the model says"], rows)
