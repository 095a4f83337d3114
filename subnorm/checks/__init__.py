"""Instant feedback for the exercises: ``checks.layer_norm(layer_norm)`` says what your function does, and why.

Every name here is an :class:`Exercise`: call it with your function. Feedback never stops a notebook. The same code
judges in class and when a teacher grades; the inputs differ.
"""

from subnorm.checks import layer_norms, placements, precision, residuals, rms_norms
from subnorm.checks.exercise import Exercise, Mistake, Result, progress
from subnorm.checks.layer_norms import (
    fold,
    group_norm,
    invariances,
    layer_norm,
    layer_norm_backward,
    make_layer_norm,
)
from subnorm.checks.placements import block, deep_norm, post_ln, pre_ln, pre_ln_block, pre_ln_stack, warm_up
from subnorm.checks.precision import (
    bytes_moved,
    faults,
    median_and_spread,
    merge_moments,
    overflows,
    share_of_copy,
    time_rounds,
)
from subnorm.checks.residuals import (
    logit_shares,
    paths,
    projected_residual,
    residual,
    residual_backward,
    scaled_stream,
    stream,
)
from subnorm.checks.rms_norms import (
    add_rms_norm,
    centre_writer,
    gemma_rms_norm,
    layer_norm_from_rms,
    llama_rms_norm,
    rms_norm,
    rms_norm_backward,
    safe_rms_norm,
)

SETS = {
    "ex01": residuals.EXERCISES,
    "ex02": layer_norms.EXERCISES,
    "ex03": rms_norms.EXERCISES,
    "ex04": placements.EXERCISES,
    "ex05": precision.EXERCISES,
}

__all__ = [
    "SETS",
    "Exercise",
    "Mistake",
    "Result",
    "add_rms_norm",
    "block",
    "bytes_moved",
    "centre_writer",
    "deep_norm",
    "faults",
    "fold",
    "gemma_rms_norm",
    "group_norm",
    "invariances",
    "layer_norm",
    "layer_norm_backward",
    "layer_norm_from_rms",
    "llama_rms_norm",
    "logit_shares",
    "make_layer_norm",
    "median_and_spread",
    "merge_moments",
    "overflows",
    "paths",
    "post_ln",
    "pre_ln",
    "pre_ln_block",
    "pre_ln_stack",
    "progress",
    "projected_residual",
    "residual",
    "residual_backward",
    "rms_norm",
    "rms_norm_backward",
    "safe_rms_norm",
    "scaled_stream",
    "share_of_copy",
    "stream",
    "time_rounds",
    "warm_up",
]
