"""What stands for functions and devices among the inputs, and what is written down of one call."""

import numpy as np
import pytest

from subnorm_lab.checks.collect import (
    UNSUPPORTED,
    Case,
    Device,
    Norm,
    Outcome,
    Scores,
    Sublayer,
    missing_module,
    outcomes_of,
)

RNG = np.random.default_rng(5)
X, WEIGHT = RNG.normal(size=(2, 3, 4)), RNG.normal(size=(4, 4))
TOKENS = np.vstack([RNG.normal(1, 2, size=(6, 5)), np.zeros(5)])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("linear", X @ WEIGHT),
        ("tanh", np.tanh(X @ WEIGHT)),
        ("relu", np.maximum(X @ WEIGHT, 0)),
        ("peak", np.array([[row / max(abs(row)) for row in rows] for rows in X])),
    ],
)
def test_a_sublayer_computes_what_its_kind_says(kind, expected):
    torch = pytest.importorskip("torch")
    sublayer = Sublayer(kind, WEIGHT)
    np.testing.assert_allclose(sublayer(X), expected)
    np.testing.assert_allclose(Sublayer(kind, torch.tensor(WEIGHT))(torch.tensor(X)).numpy(), expected)
    sublayer.veil()(X)
    assert sublayer.calls == 2


def unit(x):
    return x / np.sqrt(np.mean(np.square(x)) + 1e-12)


def middle(x):
    return x - np.mean(x)


def by_row(function):
    return np.array([function(row) for row in TOKENS])


def by_column(function):
    return np.array([function(column) for column in TOKENS.T]).T


def without_neighbour(row):
    return middle(row) - 0.25 * np.append(middle(row)[1:], middle(row)[-1])


@pytest.mark.parametrize(
    ("kind", "number", "expected"),
    [
        ("layer", 0, by_row(lambda row: unit(middle(row)))),
        ("rms", 0, by_row(unit)),
        ("batch", 0, by_column(lambda column: unit(middle(column)))),
        ("centring", 0, by_row(middle)),
        ("squares", 0, by_row(lambda row: np.square(unit(row)))),
        ("nothing", 0, TOKENS),
        ("bent", 0.25, by_row(lambda row: unit(middle(row + 0.25 * np.power(row, 3))))),
        ("soft", 0.5, by_row(lambda row: 5 * np.exp(row / 0.5) / np.exp(row / 0.5).sum())),
        ("neighbours", 0.25, by_row(without_neighbour)),
        ("batch rms", 0.25, by_column(lambda column: 1.25 * unit(column))),
    ],
)
def test_a_norm_computes_what_its_kind_says(kind, number, expected):
    gain = np.array([1.0, 2.0, -3.0, 0.5, 1.5])
    np.testing.assert_allclose(Norm(kind, number=number)(TOKENS), expected, atol=1e-9)
    np.testing.assert_allclose(Norm(kind, gain, number).veil()(TOKENS), expected * gain, atol=1e-9)


def test_a_power_norm_has_the_size_that_its_exponent_says():
    expected = [row / np.mean(np.abs(row) ** 3) ** (1 / 3) for row in TOKENS[:4]]
    np.testing.assert_allclose(Norm("power", number=3.0)(TOKENS[:4]), expected)


def test_a_norm_has_no_number_unless_one_is_given():
    assert Norm("rms").number == 0


@pytest.mark.parametrize("shape", [(3,), (2, 3, 4)])
def test_a_norm_takes_a_batch_of_tokens(shape):
    with pytest.raises(ValueError, match=r"shape \(n, d\); got shape \(") as error:
        Norm("rms")(np.ones(shape))
    assert str(shape) in str(error.value)


def test_a_device_queues_its_work():
    device = Device(launch=1.0, work=[10.0, 20.0, 40.0], first=5.0)
    api = device.veil()
    assert api.clock() == 0
    api.run()  # begins at 1
    assert (api.clock(), device.ready) == (1, 16)
    api.run()  # begins when the first one is ready
    assert (api.clock(), device.ready) == (2, 36)
    api.synchronize()
    api.synchronize()
    assert api.clock() == 36
    api.run()  # begins at 37
    api.run()  # the work comes round again; what the first run costs more does not
    assert (device.ready, device.runs) == (87, 4)
    api.synchronize()
    assert api.clock() == 87
    for _ in range(4):
        api.run()
        api.synchronize()
    assert api.clock() == 87 + 4 + 20 + 40 + 10 + 20


def test_a_device_begins_at_rest():
    device = Device(1.0, [3.0])
    assert (device.first, device.now, device.ready, device.runs) == (0, 0, 0, 0)
    device.synchronize()
    device.run()
    assert (device.clock(), device.ready) == (1, 4)


def test_scores_depend_on_all_tokens_and_end_a_loop_without_end():
    table = np.arange(7.0)[:, None]
    scores = Scores(table).veil()
    assert [scores(text).item() for text in ([], [2], [2, 5], [5, 2])] == [0, 3, 1, 0]  # 3 * 3 + 5 + 1, modulo 7
    for _ in range(96):
        scores([1])
    with pytest.raises(RuntimeError, match="more than 100 times"):
        scores([1])


def test_an_outcome_says_nothing_of_what_did_not_happen():
    assert (Outcome().line, Outcome().changed, Outcome().error, Outcome().calls) == (0, False, "", [])


def outcome(answer, *args):
    return outcomes_of(answer, [Case("one", args)])[0]


@pytest.mark.parametrize(
    ("result", "about"),
    [
        (ValueError("no"), "exception"),
        (int, "class"),
        ({1, 2}, "set"),
        (frozenset([1]), "set"),
        (iter([1]), "generator"),
        (len, "function"),
        (object(), "object"),
    ],
)
def test_what_comes_back_and_is_no_value_is_named(result, about):
    found = outcome(lambda x: result, 1)
    assert (found.error, found.about, found.message) == ("TypeError", about, UNSUPPORTED[about].split("\n")[0])


class Base(KeyError):
    pass


class Long(Base):
    pass


for k in range(12):
    Long = type(f"Long{k}", (Long,), {})


def raising(error):
    def answer(*args):
        raise error

    return answer


def test_the_kinds_of_an_error_are_the_classes_above_it():
    assert outcome(raising(Base("no"))).kinds == ["KeyError", "LookupError", "Exception", "BaseException"]
    assert outcome(raising(Long())).kinds == [f"Long{k}" for k in range(10, 0, -1)]


def test_a_message_is_cut():
    assert outcome(raising(ValueError("x" * 1000 + "\nsecond line"))).message == "x" * 300


def test_the_line_is_the_last_one_of_the_answer_itself():
    def answer(x):
        def inner():
            return x / 0

        return inner()

    start = answer.__code__.co_firstlineno
    assert outcome(answer, 1).line == start + 2
    assert outcome(len, 1).line == 0


def test_the_module_that_is_missing_is_named():
    def answer():
        import no_such_module  # noqa: F401

    assert outcome(answer).about == "no_such_module"
    assert missing_module(ModuleNotFoundError("no", name="x" * 200)) == "x" * 100
    assert missing_module(AttributeError("no", name="x")) == ""
    hidden = ImportError("no")
    hidden.absent = "torch"
    assert missing_module(hidden) == "torch"


def test_a_result_with_odd_attributes_is_none_of_our_errors():
    class Odd(np.ndarray):
        dtype = shape = "x"

    class Nowhere:
        __module__ = 5

    assert type(outcome(lambda x: np.asarray(x).view(Odd), 1.0).value) is np.ndarray
    assert outcome(lambda x: Nowhere(), 1.0).about == "object"


def test_inputs_in_a_list_are_functions_too():
    found = outcome(lambda parts: [type(part).__name__ for part in parts], [Sublayer("linear", np.eye(2)), 3])
    assert found.value == ["function", "int"]


def test_an_input_that_was_written_to_is_seen_whatever_its_dtype():
    def writes(x):
        x[0] = x[1]

    for x in (np.array([1, 2]), np.array([1.0, np.nan]), np.array(["a", "b"]), np.array([True, False])):
        assert outcome(writes, x).changed
        assert not outcome(lambda x: None, x).changed


def test_half_precision_of_pytorch_is_no_result():
    torch = pytest.importorskip("torch")
    assert outcome(lambda x: torch.ones(2, dtype=torch.bfloat16), 1).about == "bfloat16"
    assert outcome(lambda x: torch.ones(2, dtype=torch.bool), 1).value.tolist() == [True, True]


def test_a_size_of_pytorch_is_a_tuple():
    torch = pytest.importorskip("torch")
    assert outcome(lambda x: torch.ones(2, 3).shape, 1).value == (2, 3)


def test_arrays_are_kept_where_tensors_do_not_do_better():
    pytest.importorskip("torch")

    def answer(x, wrong):
        if wrong or not isinstance(x, np.ndarray):
            raise TypeError("no")
        return x

    outcomes = outcomes_of(answer, [Case("right", (np.ones(2), False)), Case("wrong", (np.ones(2), True))])
    assert [found.error for found in outcomes] == ["", "TypeError"]


@pytest.mark.parametrize("name", ["another", "zeta"])
def test_a_module_with_other_names_is_not_run(name):
    torch = pytest.importorskip("torch")

    def factory(d, eps):
        module = torch.nn.Identity()
        module.register_parameter(name, torch.nn.Parameter(torch.ones(d)))
        return module

    args = (3, 1e-5, {"weight": np.ones(3)}, np.ones((1, 3)), np.ones((1, 3)))
    found = outcomes_of(factory, [Case("one", args)], "module")[0]
    assert found.error == ""
    assert found.value["the state_dict"] == f"{name} (3,)"
    assert found.value["y"] is None


def test_a_module_factory_gives_a_module():
    torch = pytest.importorskip("torch")
    args = (3, 1e-5, {}, np.ones((1, 3)), np.ones((1, 3)))
    for answer, about in ((lambda d, eps: torch.nn.Identity, "class"), (lambda d, eps: 3, "no_module")):
        assert outcomes_of(answer, [Case("one", args)], "module")[0].about == about
    found = outcomes_of(lambda d, eps: torch.nn.Identity(), [Case("one", (*args[:4], 2 * args[4]))], "module")[0].value
    np.testing.assert_array_equal(found["dx"], 2 * args[4])


def fails_on_arrays(x, raises):
    if not hasattr(x, "unsqueeze"):
        raise raises
    return x * 2


@pytest.mark.parametrize(
    "raises", [ValueError, RuntimeError, NotImplementedError, IndexError, AssertionError, TypeError]
)
def test_tensors_are_tried_whatever_arrays_raise(raises):
    pytest.importorskip("torch")
    assert outcome(lambda x: fails_on_arrays(x, raises), np.ones(2)).value.tolist() == [2, 2]


def test_an_error_that_the_task_asks_for_is_no_reason_for_tensors():
    """This answer with arrays is right; with tensors it would not raise."""
    pytest.importorskip("torch")

    def answer(x):
        if isinstance(x, np.ndarray) and x.shape[-1] == 3:
            raise ValueError("three")
        return x

    cases = [Case("two", (np.ones(2),)), Case("three", (np.ones(3),), raises="ValueError")]
    assert [found.error for found in outcomes_of(answer, cases)] == ["", "ValueError"]


@pytest.mark.parametrize(
    ("array", "tensor", "says"),
    [
        (TypeError("an array"), ValueError("a tensor"), "a tensor"),
        (ValueError("an array"), TypeError("a tensor"), "an array"),
        (TypeError("an array"), TypeError("a tensor"), "an array"),
    ],
)
def test_of_two_errors_the_one_that_is_about_the_answer_is_told(array, tensor, says):
    pytest.importorskip("torch")

    def answer(x):
        raise tensor if hasattr(x, "unsqueeze") else array

    assert outcome(answer, np.ones(2)).message == says


def test_of_two_alike_errors_the_one_further_down_is_told():
    pytest.importorskip("torch")

    def answer(x):
        x = x.mean(-1, keepdim=True)
        return x + "a typo"

    assert "'str'" in outcome(answer, np.ones(2)).message


@pytest.mark.parametrize("kind", [GeneratorExit, SystemExit, type("Own", (BaseException,), {})])
def test_only_the_keyboard_interrupts_a_check(kind):
    def answer(x):
        raise kind

    assert outcome(answer, 1).error == kind.__name__
    with pytest.raises(KeyboardInterrupt):
        outcome(lambda x: (_ for _ in ()).throw(KeyboardInterrupt), 1)


def test_an_error_without_a_message_has_a_name():
    class Odd(ValueError):
        def __str__(self):
            raise self

    def answer(x):
        raise Odd

    found = outcome(answer, 1)
    assert (found.error, found.message, found.kinds[0]) == ("Odd", "", "ValueError")
    assert outcome(lambda x: (_ for _ in ()).throw(ValueError("\ud800")), 1).message == "?"


def test_an_array_that_cannot_be_compared_any_more_was_changed():
    def answer(x):
        x.dtype = "S8"

    assert outcome(answer, np.ones(2)).changed
