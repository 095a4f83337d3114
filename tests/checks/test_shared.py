"""The short way to write the cases of an exercise."""

import numpy as np

from subnorm_lab.checks.shared import case, drawn, of_shapes


def inputs(rng, shape, scale=1):
    return rng.normal(0, scale, shape), scale, rng.normal(0, 1, 2)


def test_cases_are_drawn_in_order_from_one_generator():
    cases = drawn(inputs, *of_shapes((3, 8)), case("a large one", (2,), scale=100, edge=True))(np.random.default_rng(0))
    rng = np.random.default_rng(0)
    assert [(made.name, made.edge, made.raises) for made in cases] == [
        ("a (3, 8) batch", False, ""), ("a large one", True, ""),
    ]  # fmt: skip
    for made, wanted in zip(cases, [inputs(rng, (3, 8)), inputs(rng, (2,), scale=100)], strict=True):
        assert all(map(np.array_equal, made.args, wanted))
        assert made.args[1] == wanted[1]


def test_a_dtype_is_that_of_all_arrays_and_leaves_the_rest_as_it_is():
    (made,) = drawn(inputs, case("half", (2, 3), dtype="float16", edge=True))(np.random.default_rng(0))
    x, scale, other = made.args
    assert (x.dtype, type(scale), other.dtype, made.name, made.edge) == ("float16", int, "float16", "half", True)


def test_a_shape_names_its_case():
    shapes = [(8,), (3, 8), (6, 6), (2, 5, 8)]
    made = drawn(inputs, *of_shapes(*shapes))(np.random.default_rng(0))
    assert {one.name: one.args[0].shape for one in made} == {
        "one token, (8,)": (8,),
        "a (3, 8) batch": (3, 8),
        "a square batch, (6, 6)": (6, 6),
        "a (2, 5, 8) batch of sequences": (2, 5, 8),
    }
