"""Published times of norms on GPUs, beside the times that counting bytes predicts. None of them was measured by us.

``published_times.json`` beside this file has each number as it is printed, the words around it, and where they are
printed. The predictions are computed: the bytes that one call must move, divided by the bandwidth of the device's
memory.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from subnorm.timing.cases import TABLES
from subnorm_lab.experiments.traffic import operations

#: Seconds, or bytes a second.
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "GB/s": 1e9, "TB/s": 1e12}


@dataclass(frozen=True)
class Printed:
    """A number as its source prints it.

    Args:
        printed, unit: the number and its unit, a key of `UNITS`.
        quote: words of the source that contain the number.
        source: its key in the bibliography.
    """

    printed: str
    unit: str
    quote: str
    source: str

    @property
    def value(self) -> float:
        """In seconds, or in bytes a second."""
        return float(self.printed) * UNITS[self.unit]


@dataclass(frozen=True)
class Device(Printed):
    """A GPU, with the bandwidth of its memory by its data sheet.

    Args:
        name: its full name.
    """

    name: str

    @property
    def bandwidth(self) -> float:
        """Bytes a second."""
        return self.value

    def seconds(self, table: str, norm: str, shape: tuple[int, int], dtype: torch.dtype) -> float:
        """What one kernel takes if it moves each array once, at the full bandwidth, and waits for nothing else.

        Args:
            table: "forward", "backward", "add_norm" or another of `TABLES`.
            norm: "layer" or "rms".
            shape: rows and features.
            dtype: of all arrays.
        """
        return TABLES[table].bytes(norm, shape, dtype) / self.bandwidth


@dataclass(frozen=True)
class Published(Printed):
    """One published measurement: a time, or a speed that counts each array once.

    Args:
        group: "large", where only bytes should count; or why they do not: "small" (the call costs more than the
            bytes), "chain" (several operations), "cache" (the array was still in the cache; "flushed" is the same
            kernel without that help), "more" (more was timed than the norm).
        device: the GPU.
        kernel: whose norm it is.
        table, norm, shape, dtype: what was computed, as in `Device.seconds`.
    """

    group: str
    device: Device
    kernel: str
    table: str
    norm: str
    shape: tuple[int, int]
    dtype: torch.dtype

    @property
    def predicted(self) -> float:
        """Seconds by the count of bytes: of one kernel, or of the chain's operations."""
        if self.group == "chain":
            return chain_bytes(self.shape, self.dtype) / self.device.bandwidth
        return self.device.seconds(self.table, self.norm, self.shape, self.dtype)

    @property
    def seconds(self) -> float:
        """Seconds as published; from a speed, those that one kernel needs at this speed."""
        if "/" not in self.unit:
            return self.value
        return TABLES[self.table].bytes(self.norm, self.shape, self.dtype) / self.value

    @property
    def ratio(self) -> float:
        """Published over predicted: 1 where bytes and bandwidth explain the whole time."""
        return self.seconds / self.predicted


def llama_rms_norm(x: Tensor, gamma: Tensor, eps: float = 1e-6) -> Tensor:
    """RMSNorm as a chain, as the benchmark of the group "chain" runs it: in float32, with a gain in float32.

    Source: ``LlamaRMSNorm`` in Liger-Kernel's ``benchmark_rms_norm.py``.
    """
    wide = x.to(torch.float32)
    variance = wide.pow(2).mean(-1, keepdim=True)
    wide = wide * torch.rsqrt(variance + eps)
    return gamma * wide.to(x.dtype)


def chain_bytes(shape: tuple[int, int], dtype: torch.dtype) -> int:
    """What the operations of `llama_rms_norm` read and write, counted without memory for the arrays."""
    x, gamma = torch.empty(shape, dtype=dtype, device="meta"), torch.empty(shape[1], device="meta")
    return sum(operation.bytes for operation in operations(lambda: llama_rms_norm(x, gamma)))


def _read() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
    return found


def sources() -> dict[str, str]:
    """A Markdown link to each source, in the words of the bibliography, by its key there."""
    return {key: f"[{about['cited']}]({about['address']})" for key, about in _read()["sources"].items()}


def devices() -> dict[str, Device]:
    """The GPUs, by their short names."""
    return {key: Device(**about) for key, about in _read()["devices"].items()}


def measurements() -> list[Published]:
    """The published measurements, in the order of the file."""
    gpus = devices()
    return [
        Published(
            **{
                **row,
                "device": gpus[row["device"]],
                "shape": tuple(row["shape"]),
                "dtype": getattr(torch, row["dtype"]),
            }
        )
        for row in _read()["rows"]
    ]
