"""A seccomp filter for the system calls of a submission.

The kernel refuses calls

- that reach into another process: ptrace, process_vm_readv, process_vm_writev, pidfd_getfd;
- that allocate memory which does not count towards any process's size: shmget, semget, msgget, memfd_create,
  memfd_secret, vmsplice, and mmap with MAP_SHARED;
- that no answer needs: keys, bpf, perf_event_open, userfaultfd, io_uring_setup, and sockets other than AF_UNIX, because
  a network namespace does not isolate every family (AF_VSOCK).

chmod, chown and setxattr have no effect: if root grades, the devices in /dev are those of the machine.
"""

import ctypes
import errno
import os
import struct
import sys
from dataclasses import dataclass

AF_UNIX = 1
MAP_SHARED = 1  # MAP_SHARED_VALIDATE has this bit too


@dataclass(frozen=True)
class Calls:
    """The system call numbers of one architecture."""

    machine: int
    mmap: int
    sockets: tuple[int, int]  # socket, socketpair
    refused: tuple[int, ...]
    ignored: tuple[int, ...]


MACHINES = {
    "x86_64": Calls(
        machine=0xC000003E,
        mmap=9,
        sockets=(41, 53),
        refused=(101, 310, 311, 438, 29, 64, 68, 248, 249, 250, 278, 298, 319, 321, 323, 425, 447),
        ignored=(90, 91, 92, 93, 94, 188, 189, 190, 260, 268, 452, 463),
    ),
    "aarch64": Calls(
        machine=0xC00000B7,
        mmap=222,
        sockets=(198, 199),
        refused=(117, 270, 271, 438, 194, 190, 186, 217, 218, 219, 75, 241, 279, 280, 282, 425, 447),
        ignored=(52, 53, 54, 55, 5, 6, 7, 452, 463),
    ),
}


def program() -> bytes:
    """The filter, for the kernel and ``bwrap --seccomp``; empty if the architecture's call numbers are not known."""
    calls = MACHINES.get(os.uname().machine) if sys.platform == "linux" else None
    if calls is None:
        return b""
    load, equal, at_least, has, give = 0x20, 0x15, 0x35, 0x45, 0x06
    number, machine, first, fourth = 0, 4, 16, 40  # offsets: of the call, the machine, two of the arguments
    error = 0x00050000
    no, nothing, yes = error | errno.EPERM, error, 0x7FFF0000
    steps = [(load, 0, 0, machine), (equal, 1, 0, calls.machine), (give, 0, 0, no)]
    steps += [(load, 0, 0, number), (at_least, 0, 1, 0x40000000), (give, 0, 0, no)]  # x32: the same calls, renumbered
    for numbers, result in ((calls.refused, no), (calls.ignored, nothing)):
        for call in numbers:
            steps += [(equal, 0, 1, call), (give, 0, 0, result)]
    steps += [(equal, 0, 4, calls.mmap), (load, 0, 0, fourth), (has, 0, 1, MAP_SHARED), (give, 0, 0, no)]
    steps += [(give, 0, 0, yes)]
    for call in calls.sockets:
        steps += [(equal, 0, 4, call), (load, 0, 0, first), (equal, 1, 0, AF_UNIX)]
        steps += [(give, 0, 0, error | errno.EAFNOSUPPORT), (give, 0, 0, yes)]
    steps += [(give, 0, 0, yes)]
    return b"".join(struct.pack("HBBI", *step) for step in steps)


def refuse_calls() -> None:
    """Install the filter on this process and its children, permanently."""
    steps = program()
    if not steps:
        return
    code = ctypes.create_string_buffer(steps, len(steps))
    filtered = ctypes.create_string_buffer(struct.pack("HP", len(steps) // 8, ctypes.addressof(code)))
    call = ctypes.CDLL(None, use_errno=True).prctl
    for arguments in ((38, 1, 0, 0, 0), (22, 2, ctypes.addressof(filtered), 0, 0)):  # PR_SET_NO_NEW_PRIVS, _SECCOMP
        if call(*map(ctypes.c_ulong, arguments)):
            raise OSError(ctypes.get_errno(), "the system calls of a submission cannot be limited")
