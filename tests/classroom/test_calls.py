"""The filter of system calls, run step by step as the kernel would run it, for both kinds of machine."""

import errno
import struct
from types import SimpleNamespace

import pytest

from subnorm_classroom.grading import calls

ALLOWED, NOTHING = 0x7FFF0000, 0x00050000
REFUSED, NO_FAMILY = NOTHING | errno.EPERM, NOTHING | errno.EAFNOSUPPORT
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

#: the kernel's numbers of the calls that the filter names, on x86-64 and on 64-bit Arm, which has no call of some names
FOREIGN = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "pidfd_getfd": (438, 438),
    "shmget": (29, 194), "semget": (64, 190), "msgget": (68, 186), "memfd_create": (319, 279),
    "memfd_secret": (447, 447), "vmsplice": (278, 75), "add_key": (248, 217), "request_key": (249, 218),
    "keyctl": (250, 219), "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
}  # fmt: skip
WITHOUT_EFFECT = {
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, None),
    "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54), "setxattr": (188, 5), "lsetxattr": (189, 6),
    "fsetxattr": (190, 7), "setxattrat": (463, 463),
}  # fmt: skip
MMAP, SOCKET, SOCKETPAIR = (9, 222), (41, 198), (53, 199)
USUAL = {"read": (0, 63), "write": (1, 64), "openat": (257, 56), "execve": (59, 221), "futex": (202, 98)}
MAP_PRIVATE, AF_INET, AF_VSOCK = 2, 2, 40
X32 = 0x40000000


@pytest.fixture(params=AUDIT)
def answer(request, monkeypatch):
    """The kernel's answer to a call, for a machine of each kind; a call is a pair of numbers, one for each."""
    monkeypatch.setattr(calls.os, "uname", lambda: SimpleNamespace(machine=request.param))
    monkeypatch.setattr(calls.sys, "platform", "linux")
    program = list(struct.iter_unpack("HBBI", calls.program()))

    def answer(call, first=0, fourth=0, machine=AUDIT[request.param]):
        number = call[list(AUDIT).index(request.param)]
        data, value, at = {0: number, 4: machine, 16: first, 40: fourth}, 0, 0
        while number is not None:
            code, true, false, k = program[at]
            if code == 0x06:
                return k
            if code == 0x20:
                value, true, false = data[k], 0, 0
            at += 1 + (true if {0x15: value == k, 0x35: value >= k, 0x45: value & k}.get(code) else false)

    return answer


@pytest.mark.parametrize("name", FOREIGN)
def test_a_call_that_reaches_out_is_refused(name, answer):
    assert answer(FOREIGN[name]) == REFUSED


@pytest.mark.parametrize("name", WITHOUT_EFFECT)
def test_the_mode_and_the_owner_of_a_file_stay(name, answer):
    assert answer(WITHOUT_EFFECT[name]) in (NOTHING, None)


def test_no_other_call_is_refused(answer):
    named = {**FOREIGN, **WITHOUT_EFFECT, "socket": SOCKET, "socketpair": SOCKETPAIR}
    taken = [set(numbers) for numbers in zip(*named.values(), strict=True)]
    others = [(number, number) for number in range(500) if not any(number in numbers for numbers in taken)]
    assert {answer(call) for call in [*USUAL.values(), *others]} == {ALLOWED}
    assert answer((X32 - 1, X32 - 1)) == ALLOWED


def test_memory_is_shared_with_no_other_process(answer):
    assert answer(MMAP, fourth=calls.MAP_SHARED) == answer(MMAP, fourth=3) == REFUSED
    assert answer(MMAP, fourth=MAP_PRIVATE) == answer(MMAP, fourth=MAP_PRIVATE | 0x20) == ALLOWED


@pytest.mark.parametrize("call", [SOCKET, SOCKETPAIR])
def test_a_socket_stays_on_the_machine(call, answer):
    assert answer(call, first=1) == ALLOWED
    assert [answer(call, first=family) for family in (0, AF_INET, AF_VSOCK)] == [NO_FAMILY] * 3


def test_the_calls_of_another_machine_and_those_with_other_numbers_are_refused(answer):
    read = USUAL["read"]
    assert answer(read, machine=0x40000003) == REFUSED  # 32-bit calls on x86-64
    assert answer((X32, X32)) == answer(tuple(X32 + number for number in read)) == REFUSED


@pytest.mark.parametrize(("machine", "platform"), [("riscv64", "linux"), ("x86_64", "darwin")])
def test_there_is_no_filter_where_the_numbers_are_not_known(machine, platform, monkeypatch):
    monkeypatch.setattr(calls.os, "uname", lambda: SimpleNamespace(machine=machine))
    monkeypatch.setattr(calls.sys, "platform", platform)
    assert calls.program() == b""
