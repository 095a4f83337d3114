"""Run an answer on cases and collect the outcomes, without a verdict and without the right answers.

The grader runs this file next to the answer, inside the sandbox, and compares outside; so it imports only NumPy. In
class it runs in the notebook.
"""

import ast
import importlib
import inspect
import linecache
import sys
import textwrap
import traceback
import types
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np


@dataclass
class Case:
    """One call of the function that the exercise asks for.

    Args:
        name: a description for the feedback: "a (3, 8) float32 batch".
        args: the arguments of the call; anything that `convert` can copy.
        edge: compared only if every other case is right, so that feedback is about one mistake at a time.
        raises: name of the error that the task asks for; empty if it asks for a result.
        names: what the message of that error has to name.
    """

    name: str
    args: tuple[Any, ...]
    edge: bool = False
    raises: str = ""
    names: str = ""


@dataclass
class Outcome:
    """The result of one case: a value, or an error."""

    value: Any = None
    error: str = ""  # the name of the exception; empty if there was none
    message: str = ""
    line: int = 0  # of the answer's own code, counted from the top of its cell
    changed: bool = False  # whether an input was changed in place
    calls: list[int] = field(default_factory=list)  # how often each function among the inputs was called
    kinds: list[str] = field(default_factory=list)  # names of the error's base classes
    about: str = ""  # a key in `UNSUPPORTED`, the name of a missing module, or "numpy": see `choose`


# Stand-ins for functions and devices among the inputs. An answer does not get these objects, but functions that
# `veil` makes from them, so no attribute of its input reveals what the answer should measure. Code that inspects a
# function's internals can still find it; the grader flags such code.


@dataclass
class Sublayer:
    """A stand-in for a sublayer or a norm, which counts its calls.

    ``kind`` is "linear" (x @ weight), "tanh" or "relu" (of x @ weight), "peak" (divides every row by its largest
    absolute value: a normalization that no exercise asks for; a gain, if given, multiplies each feature), or "same"
    (returns its input, as torch.nn.Identity does, and no copy of it: who writes into the result writes into the input).
    """

    kind: str
    weight: Any = None  # (d, d)
    calls: int = 0

    def __call__(self, x: Any, gain: Any = 1.0) -> Any:
        self.calls += 1
        if self.kind == "same":
            return x
        if self.kind == "peak":
            rows = np.abs(x).max(-1, keepdims=True) if isinstance(x, np.ndarray) else x.abs().amax(-1, keepdim=True)
            return gain * (x / rows)
        y = x @ self.weight
        if self.kind == "linear":
            return y
        if self.kind == "relu":
            return y * (y > 0)
        return np.tanh(y) if isinstance(y, np.ndarray) else y.tanh()

    def veil(self) -> Callable[..., Any]:
        return lambda x, *gain: self(x, *gain)


@dataclass
class Norm:
    """A norm of a batch of tokens, (n, d), whose invariances an answer measures. Its calls are not counted.

    ``kind`` is one of `NORMS`; an optional ``gain`` multiplies each feature of the result. ``number`` is the exponent,
    share or temperature of a kind that has one.
    """

    kind: str
    gain: Any = None  # (d,)
    number: float = 0.0

    def __call__(self, x: Any) -> Any:
        if len(x.shape) != 2:
            raise ValueError(f"norm takes a batch of tokens, shape (n, d); got shape {tuple(x.shape)}")
        y = NORMS[self.kind](x, self.number)
        return y if self.gain is None else y * self.gain

    def veil(self) -> Callable[[Any], Any]:
        return lambda x: self(x)


def centred(x: Any, axis: int) -> Any:
    return x - x.mean(axis, keepdims=True)


def unit(x: Any, axis: int) -> Any:
    return x / ((x * x).mean(axis, keepdims=True) + 1e-12) ** 0.5


def soft(x: Any, temperature: float) -> Any:
    """The softmax of each row, divided by its mean."""
    e = 2.718281828459045 ** (centred(x, 1) / temperature)
    return e / e.mean(1, keepdims=True)


def without_neighbours(x: Any, share: float) -> Any:
    """c[i] - share * c[i + 1], where c is the centred row; the last feature is its own neighbour."""
    c = centred(x, 1)
    return c - share * c[:, [*range(1, c.shape[1]), -1]]


NORMS: dict[str, Callable[[Any, float], Any]] = {
    "layer": lambda x, _: unit(centred(x, 1), 1),
    "rms": lambda x, _: unit(x, 1),
    "batch": lambda x, _: unit(centred(x, 0), 0),
    "centring": lambda x, _: centred(x, 1),
    "squares": lambda x, _: unit(x, 1) ** 2,
    "nothing": lambda x, _: x * 1.0,
    # the mean and size of these norms' results do not reveal their invariances
    "power": lambda x, p: x / (abs(x) ** p).mean(1, keepdims=True) ** (1 / p),
    "bent": lambda x, share: unit(centred(x + share * x**3, 1), 1),
    "soft": soft,
    "neighbours": without_neighbours,
    "batch rms": lambda x, share: unit(x, 0) * (1 + share),
}


@dataclass
class Device:
    """A simulated accelerator with its own clock: its times are exact, and the same on every machine.

    ``run()`` returns after ``launch`` seconds and queues the work (the first run takes ``first`` seconds more);
    ``synchronize()`` waits for all work; ``clock()`` returns the time in seconds.
    """

    launch: float
    work: list[float]  # seconds of each run, repeated in a cycle
    first: float = 0.0
    now: float = 0.0
    ready: float = 0.0
    runs: int = 0

    def run(self) -> None:
        self.now += self.launch
        work = self.work[self.runs % len(self.work)] + (self.first if self.runs == 0 else 0.0)
        self.ready = max(self.ready, self.now) + work
        self.runs += 1

    def synchronize(self) -> None:
        self.now = max(self.now, self.ready)

    def clock(self) -> float:
        return self.now

    def veil(self) -> types.SimpleNamespace:
        calls = {"run": lambda: self.run(), "synchronize": lambda: self.synchronize(), "clock": lambda: self.clock()}
        return types.SimpleNamespace(**calls)


@dataclass
class Scores:
    """A stand-in for a language model. The scores of its next token depend on all tokens so far, and on their order."""

    table: Any  # (rows, V): the scores, in each state
    calls: int = 0

    def __call__(self, tokens: Any) -> Any:
        self.calls += 1
        if self.calls > 100:
            raise RuntimeError("next_scores was called more than 100 times: does your loop end?")
        row = 0
        for token in tokens:
            row = (3 * row + int(token) + 1) % len(self.table)
        return self.table[row] * 1.0

    def veil(self) -> Callable[[Any], Any]:
        return lambda tokens: self(tokens)


#: allowed among the inputs, besides arrays and numbers
STAND_INS: dict[str, type] = {"Sublayer": Sublayer, "Norm": Norm, "Device": Device, "Scores": Scores}


#: the message for a result that cannot be compared, or for an error that needs another word
UNSUPPORTED = {
    "exception": "it returns an exception: raise it instead",
    "class": "it returns a class: return an instance, with parentheses after the class's name",
    "generator": "it returns a generator or an iterator, whose values are not computed yet: return a list or an array",
    "function": "it returns a function: return the result of calling it",
    "set": "it returns a set, which has no order: return a list or an array",
    "bfloat16": "the result is in bfloat16: give it the dtype that the task asks for",
    "no_module": "the result is not a torch.nn.Module",
    "undone": "it calls a function that is not written yet",
    "leftover": "a line raise NotImplementedError is still above your code: delete it",
    "object": "the result must be an array, a number, a string, or a list, tuple or dict of these",
}


class UnsupportedResult(TypeError):
    """A result that cannot be compared; the key in `UNSUPPORTED` gives the reason."""

    def __init__(self, key: str) -> None:
        super().__init__(UNSUPPORTED[key])
        self.key = key


def as_module(factory: Callable[..., Any], d: int, eps: float, state: Any, x: Any, dy: Any) -> Any:
    """The initial state, output and gradients of the ``torch.nn.Module`` that ``factory(d, eps)`` makes.

    It loads ``state`` and runs the module only if names and shapes match.
    """
    torch = importlib.import_module("torch")
    module = factory(d, eps)
    if module is None or module is ...:
        return module
    if not isinstance(module, torch.nn.Module):
        raise UnsupportedResult("class" if isinstance(module, type) else "no_module")
    own = {name: value.clone() for name, value in module.state_dict().items()}
    found = {"the state_dict": shapes(own), **{f"{name} at the start": own.get(name) for name in state}}
    results = {"y": None, "dx": None, **{f"the gradient of {name}": None for name in state}}
    if shapes(own) == shapes(state):
        module.load_state_dict({name: torch.as_tensor(value) for name, value in state.items()})
        x = torch.as_tensor(x).requires_grad_()
        y, dy = module(x), torch.as_tensor(dy)
        if isinstance(y, torch.Tensor) and y.shape == dy.shape:
            (y * dy).sum().backward()  # as y.backward(dy), which would import SymPy for a third of a second
        else:
            y.backward(dy)  # raises
        weights = dict(module.named_parameters())
        gradients = {f"the gradient of {name}": getattr(weights.get(name), "grad", None) for name in state}
        results = {"y": y, "dx": x.grad, **gradients}
    return {**found, **results}


def shapes(state: dict[str, Any]) -> str:
    return ", ".join(f"{name} {tuple(value.shape)}" for name, value in sorted(state.items())) or "empty"


WAYS: dict[str, Callable[..., Any]] = {"function": lambda answer, *args: answer(*args), "module": as_module}
NEEDS = {"module": {"torch": "PyTorch"}}  # for each way: the module to import, and its library's name


def outcomes_of(answer: Callable[..., Any], cases: Sequence[Case], way: str = "function") -> list[Outcome]:
    """The outcomes of all cases. An answer that needs PyTorch tensors gets them.

    Args:
        answer: the function or the class that a student wrote.
        cases: the calls to make.
        way: how to call it, one of `WAYS`.
    """
    return choose(attempts(answer, cases, way), cases)


def attempts(answer: Callable[..., Any], cases: Sequence[Case], way: str = "function") -> list[list[Outcome]]:
    """The outcomes of all cases with arrays; if any is an error, and PyTorch is loaded, also those with tensors."""
    found = [[run_case(answer, case, way, tensors=False) for case in cases]]
    if sys.modules.get("torch") and any(outcome.error for outcome in found[0]):
        found.append([run_case(answer, case, way, tensors=True) for case in cases])
    return found


def choose(found: Sequence[list[Outcome]], cases: Sequence[Case]) -> list[Outcome]:
    """Of some `attempts`, the one with the fewest errors that no task asks for; of equal ones, the better message.

    That is the one with fewer errors that may come from an array in place of a tensor (or the reverse), or else the one
    that got further in the answer's code. But a TypeError with arrays is the fault of an answer in NumPy: where
    `keepdim=True` raises one, the `var` of a tensor would be another mistake.
    """

    def wrongness(outcomes: Sequence[Outcome]) -> tuple[bool, int, int, int]:
        own = any(out.about == "numpy" for out in outcomes)
        errors = [out for out, case in zip(outcomes, cases, strict=True) if out.error and not case.raises]
        misfits = sum(out.error in ("TypeError", "AttributeError") for out in errors)
        return not own, len(errors), misfits, -sum(out.line for out in errors)

    return min(found, key=wrongness)


def run_case(answer: Callable[..., Any], case: Case, way: str, tensors: bool) -> Outcome:
    """The outcome of one case."""
    args = convert(case.args, tensors)
    given = veil(args)
    before = copied(given)
    outcome = Outcome()
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an overflow shows in the value
            outcome.value = plain(WAYS[way](answer, *given))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        outcome.error, *outcome.kinds = [name_of(kind) for kind in type.mro(type(error))[:-1]][:11]
        outcome.message, outcome.line = message_of(error), own_line(error, answer)
        if isinstance(error, UnsupportedResult):
            outcome.error, outcome.about = "TypeError", error.key
        elif isinstance(error, ModuleNotFoundError):
            outcome.about = missing_module(error)
        elif isinstance(error, NotImplementedError):
            outcome.about = undone(error, answer, outcome.message)
        elif isinstance(error, TypeError) and not tensors and in_numpy(answer):
            outcome.about = "numpy"
    try:
        outcome.changed = not untouched(before, given)
    except Exception:  # an array has another dtype now, or a list more entries
        outcome.changed = True
    outcome.calls = [arg.calls for arg in args if isinstance(arg, Sublayer)]
    outcome.calls += [arg.runs for arg in args if isinstance(arg, Device)]
    return outcome


def name_of(kind: type) -> str:
    """The name of a class, whatever its metaclass says."""
    return str(type.__dict__["__name__"].__get__(kind))


def message_of(error: BaseException) -> str:
    """The beginning of an error's message, as text that can be printed; empty if the error fails to give one."""
    try:
        return str(error).strip()[:300].encode(errors="replace").decode()
    except Exception:
        return ""


def missing_module(error: BaseException) -> str:
    """The name of the module that an error reports missing; otherwise empty."""
    name = getattr(error, "absent", None) or getattr(error, "name", None)
    return name[:100] if isinstance(error, ImportError) and isinstance(name, str) else ""


def in_numpy(answer: Callable[..., Any]) -> bool:
    """Whether a function uses NumPy by its name, and PyTorch not."""
    names = {name for code in codes_of(answer) for name in code.co_names}
    used = [value for name, value in answer.__globals__.items() if name in names] if names else []
    parts = [getattr(one, "__name__" if isinstance(one, types.ModuleType) else "__module__", None) for one in used]
    libraries = {str(part).split(".")[0] for part in parts}
    return "numpy" in libraries and "torch" not in libraries


def undone(error: BaseException, answer: Callable[..., Any], message: str) -> str:
    """A key in `UNSUPPORTED` if an answer that raises NotImplementedError is written all the same; otherwise empty."""
    own = codes_of(answer)
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    if not own or '"forward"' in message:  # a class, or the error of a PyTorch module without a forward
        return ""
    if frames[-1].f_code not in own:
        return "undone"
    return "leftover" if goes_on(frames[-1].f_code) else ""


def codes_of(function: Any) -> list[types.CodeType]:
    """The code of a function, of those inside it, and of those that it wraps, as a decorator does."""
    if isinstance(function, types.CodeType):
        return [function, *(code for inner in function.co_consts for code in codes_of(inner))]
    if not isinstance(function, types.FunctionType):
        return []
    held = [cell.cell_contents for cell in function.__closure__ or () if cell != types.CellType()]
    wrapped = [inner for inner in held if isinstance(inner, types.FunctionType) and inner is not function]
    return [*codes_of(function.__code__), *(code for inner in wrapped for code in codes_of(inner.__code__))]


def goes_on(code: types.CodeType) -> bool:
    """Whether a function has more lines below its `raise NotImplementedError`."""
    try:
        lines = linecache.getlines(code.co_filename)[code.co_firstlineno - 1 :]
        function = ast.parse(textwrap.dedent("".join(inspect.getblock(lines)))).body[0]
    except Exception:  # the source is not at hand, or not of this function
        return False
    raised = False
    for line in getattr(function, "body", []):
        idle = isinstance(line, ast.Pass) or (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant))
        if raised and not idle:
            return True
        raised = raised or isinstance(line, ast.Raise)
    return False


def veil(value: Any) -> Any:
    """An input for the answer, with functions in place of stand-ins."""
    if isinstance(value, list | tuple):
        return type(value)(map(veil, value)) if any(holds_stand_in(item) for item in value) else value
    return value.veil() if holds_stand_in(value) else value


def holds_stand_in(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(holds_stand_in, value))
    return type(value).__name__ in STAND_INS


def convert(value: Any, tensors: bool) -> Any:
    """A copy of an input, optionally with PyTorch tensors in place of arrays."""
    if isinstance(value, np.ndarray):
        return sys.modules["torch"].tensor(value) if tensors else value.copy()
    if isinstance(value, list | tuple):
        return type(value)(convert(item, tensors) for item in value)
    if isinstance(value, dict):
        return {key: convert(item, tensors) for key, item in value.items()}
    if type(value).__name__ in STAND_INS:
        return type(value)(**{f.name: convert(getattr(value, f.name), tensors) for f in fields(value)})
    return value


def plain(value: Any) -> Any:
    """A result as arrays, numbers, strings, and lists, tuples and dicts of these; TypeError for anything else."""
    if str(type(value).__module__).startswith("torch") and hasattr(value, "detach"):
        if str(value.dtype) == "torch.bfloat16":
            raise UnsupportedResult("bfloat16")  # NumPy has no such dtype
        return value.detach().cpu().numpy()
    if isinstance(value, np.ndarray):
        return np.asarray(value)  # of a subclass the array itself, with the attributes of one
    if isinstance(value, bool | int | float | str) or value is None or value is ...:
        return value
    if isinstance(value, np.generic):
        return np.asarray(value)
    if isinstance(value, list | tuple):
        return type(value)(plain(item) for item in value) if type(value) in (list, tuple) else tuple(map(plain, value))
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    raise UnsupportedResult(kind_of(value))


def kind_of(value: Any) -> str:
    """The key in `UNSUPPORTED` for an invalid result."""
    if isinstance(value, BaseException | type):
        return "class" if isinstance(value, type) else "exception"
    if isinstance(value, set | frozenset):
        return "set"
    if hasattr(value, "__next__"):
        return "generator"
    return "function" if callable(value) else "object"


def copied(value: Any) -> Any:
    """A copy of an input that an answer gets, with its functions as they are."""
    if isinstance(value, list | tuple):
        return type(value)(map(copied, value))
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return value.copy()
    return value.detach().clone() if hasattr(value, "detach") else value


def untouched(before: Any, after: Any) -> bool:
    """Whether an input was not changed in place: no array, list or dict."""
    if type(before) is not type(after):
        return False
    if isinstance(before, list | tuple):
        return len(before) == len(after) and all(map(untouched, before, after))
    if isinstance(before, dict):
        return before.keys() == after.keys() and all(untouched(before[key], after[key]) for key in before)
    if isinstance(before, np.ndarray):
        return np.array_equal(before, after, equal_nan=before.dtype.kind == "f")
    if hasattr(before, "detach"):
        return untouched(plain(before), plain(after))
    return before is after or bool(before == after)  # a number or a string; functions are the same


def own_line(error: BaseException, answer: Callable[..., Any]) -> int:
    """The line of the answer's own file or cell at which an error arose; 0 if unknown."""
    own = getattr(getattr(answer, "__code__", None), "co_filename", None)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == own]
    return (lines[-1] or 0) if lines else 0
