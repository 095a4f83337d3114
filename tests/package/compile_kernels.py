"""Compile the fused kernels for an H100 (sm_90), which needs no GPU, and print the results as JSON.

A script, because the tests of what the kernels compute turn on Triton's interpreter, and that is for a whole process:

    python tests/package/compile_kernels.py
"""

import json
import re
import subprocess
import tempfile
from pathlib import Path

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from subnorm.torch import kernels

CUOBJDUMP = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
POINTERS = {torch.float16: "*fp16", torch.bfloat16: "*bf16", torch.float32: "*fp32", torch.float64: "*fp64"}
TENSORS = {"x", "f", "h", "y", "dy", "dh", "dx", "gamma", "beta"}  # in the dtype of x; the rest in at least float32

NO_MEAN = {"mean", "beta", "dbeta"}
CASES = [
    *(("forward", d, torch.bfloat16, absent) for d in (256, 16384) for absent in (set(), NO_MEAN)),
    *(("backward", d, torch.bfloat16, absent) for d in (256, 8192) for absent in (set(), NO_MEAN)),
    ("backward", 768, torch.bfloat16, {"dh"}),
    ("forward", 4096, torch.float32, {"f", "h"}),
    ("backward", 8192, torch.float32, set()),
]
# Compile only: no gain, one feature, and one row, which Triton also specialises as a constant.
EDGES = [
    *((name, 24, dtype, {"gamma", "beta"}) for name in ("forward", "backward") for dtype in POINTERS),
    *((name, 1, torch.float32, {"rows"}) for name in ("forward", "backward")),
]


def compiled(name: str, d: int, dtype: torch.dtype, absent: set[str]) -> dict:
    """The kernel as its wrapper launches it, with None for the arguments in `absent`; "rows" means a single row."""
    kernel = getattr(kernels, f"_{name}")
    block, rows, warps = getattr(kernels, f"{name}_tile")(d)
    wide = torch.promote_types(dtype, torch.float32)
    values = {"D": d, "EPS": 1e-5, "BLOCK": block, "ROWS": rows, "WIDE": kernels.TYPES[wide]}
    values |= {"rows": 1} if "rows" in absent else {}
    constants = {key: values.get(key) for key in kernel.arg_names if key in values or key in absent}
    signature = {key: POINTERS[dtype if key in TENSORS else wide] for key in kernel.arg_names}
    signature |= {"rows": "i32"} | dict.fromkeys(constants, "constexpr")
    pointers = [key for key, kind in signature.items() if kind.startswith("*")]
    # PyTorch's memory begins at multiples of 16 bytes, and Triton notes that at every launch.
    aligned = {(kernel.arg_names.index(key),): [["tt.divisibility", 16]] for key in pointers}
    asm = triton.compile(
        ASTSource(kernel, signature, constants, aligned), GPUTarget("cuda", 90, 32), {"num_warps": warps}
    ).asm

    with tempfile.NamedTemporaryFile(suffix=".cubin") as cubin:
        cubin.write(asm["cubin"])
        cubin.flush()
        usage = subprocess.run([CUOBJDUMP, "-res-usage", cubin.name], capture_output=True, text=True, check=True).stdout
    return {
        "case": [name, d, str(dtype), sorted(absent)],
        "pointers": pointers,
        "threads": kernels.THREADS if name == "backward" else 32 * warps,
        "loads": re.findall(r"ld\.global\.(\S+)", asm["ptx"]),
        "stores": re.findall(r"st\.global\.(\S+)", asm["ptx"]),
        "offsets": re.findall(rf"tt\.addptr .*tensor<(?:1|{rows})x{block}x(i\d+)>", asm["ttir"]),
        **{key: int(re.search(rf"{key}:(\d+)", usage)[1]) for key in ("REG", "STACK", "LOCAL")},
    }


if __name__ == "__main__":
    for case in EDGES:
        compiled(*case)
    print(json.dumps([compiled(*case) for case in CASES]))
