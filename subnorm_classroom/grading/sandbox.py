"""Run untrusted code safely: bubblewrap, limits, and a watch from outside.

The sandbox contains /usr, Python and its installed packages (read-only), the CPU information that PyTorch reads, and
an empty /tmp of fixed size: no network, home, course, submissions or other processes, and nothing else of /proc. The
kernel limits each process, including bubblewrap's own pid 1, and refuses some system calls
(`subnorm_classroom.grading.calls`). The grader itself watches the number of processes and their total memory, because
root is exempt from RLIMIT_NPROC.
"""

import contextlib
import importlib.util
import json
import math
import os
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from subnorm_classroom.errors import Refusal
from subnorm_classroom.grading import calls
from subnorm_classroom.grading.wire import LARGEST, PACKAGES

COURSE = Path(__file__).resolve().parents[2]  # the checkout, or where the packages are installed
#: The only files of the course inside.
INSIDE = [
    "subnorm_lab/checks/collect.py",
    *(f"subnorm_classroom/grading/{name}.py" for name in ("calls", "wire", "shell", "child")),
]
# Without these PyTorch cannot identify the CPU, and fails to convert float16; it reads the lists in /sys on ARM.
CPU = ["/proc/cpuinfo", *(f"/sys/devices/system/cpu/{name}" for name in ("possible", "present", "kernel_max"))]
ULIMIT = {"CPU": ("t", 1), "AS": ("v", 1024), "FSIZE": ("f", 512), "NOFILE": ("n", 1), "CORE": ("c", 1)}  # and units
STUDENT = "student"  # the user's name inside
FIX = "Install bubblewrap (apt install bubblewrap, Linux only), or read what --no-sandbox means before you use it."


class NoSandbox(Refusal):
    """This machine cannot isolate a process; the message says why, and how to fix it."""


@dataclass(frozen=True)
class Limits:
    """The limits of a submission. Times are wall-clock seconds, sizes are bytes."""

    start: float = 60  # without a sign of life; then the teacher is told, and it goes on
    cell: float = 20
    question: float = 10
    total: float = 90  # of one student, with all restarts
    restarts: int = 10
    memory: int = 1 << 30  # of all processes together
    address: int = 2 << 30  # of each process, without PyTorch
    torch_address: int = 16 << 30
    processes: int = 16  # and threads
    file: int = 8 << 20  # each
    scratch: int = 64 << 20  # /tmp
    scratch_files: int = 10_000  # in /tmp: even an empty file takes memory
    open_files: int = 64
    watch: float = 0.02  # seconds between two checks
    stall: float = 1  # after so many seconds without a check, this machine stood still, and the time does not count


@dataclass
class Ending:
    """How a process ended ("end" if it finished, otherwise the cause), and where."""

    how: str  # "end", "killed", "timeout", "memory", "processes", "output"
    at: str  # "start", "cell", "question" or "end"
    which: Any = None  # number of the cell, name of the question


class Sandbox:
    """Runs each job in its own process. A context manager, with a folder for the program's files.

    Args:
        isolated: whether to use bubblewrap. Without it only the limits apply.
        limits: the limits of each run.
        hidden: folders to hide from the sandbox, even if they are inside the installed packages.
    """

    def __init__(self, isolated: bool = True, limits: Limits | None = None, hidden: Sequence[Path] = ()) -> None:
        if not importlib.util.find_spec("IPython"):
            raise NoSandbox("notebooks run with IPython, which is not installed here: pip install -e '.[classroom]'")
        self.isolated, self.limits = isolated, limits or Limits()
        self.python = Path(getattr(sys, "_base_executable", None) or sys.executable).resolve()
        self.packages = [Path(folder).resolve() for folder in installed_in()]
        self.told = -math.inf  # when the teacher was last told that a process has not begun
        self.hidden = [*(COURSE / name for name in (*PACKAGES, "notebooks")), *(path.resolve() for path in hidden)]

    def __enter__(self) -> "Sandbox":
        if not hasattr(select, "poll"):
            raise NoSandbox("Grading works on Linux, and with --no-sandbox on macOS. On Windows, use WSL.")
        with usable_temporary_folder():
            self.folder = Path(tempfile.mkdtemp(prefix="subnorm-grade-")).resolve()
        try:
            with usable_temporary_folder():
                for name in INSIDE:
                    copy = self.folder / "grader" / name
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(COURSE / name, copy)
                (self.folder / "calls").write_bytes(calls.program())
                (self.folder / "passwd").write_text(f"{STUDENT}:x:65534:65534::/tmp:/bin/sh\n")
            if self.isolated:
                self.probe()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def probe(self) -> None:
        """Raise NoSandbox if this machine cannot run a program in isolation."""
        if not sys.platform.startswith("linux") or not shutil.which("bwrap"):
            raise NoSandbox(f"Submissions run arbitrary code, and this machine has no bubblewrap. {FIX}")
        process = subprocess.Popen(
            self.command({}, does=""), env=self.environment(), stderr=subprocess.PIPE, start_new_session=True
        )
        try:
            stderr = self.patiently(process)
        finally:
            end(process)
        if process.returncode:
            why = (stderr.decode(errors="replace").strip().split("\n") or ["?"])[-1][:300]
            raise NoSandbox(f"bubblewrap is installed, but Python does not start in it: {why}. {FIX}")

    def patiently(self, process: subprocess.Popen[bytes]) -> bytes:
        """The errors of a process that runs no code of a student, when it has ended."""
        while True:
            try:
                return process.communicate(timeout=self.limits.start)[1]
            except subprocess.TimeoutExpired:
                self.tell_that_it_waits()

    def tell_that_it_waits(self) -> None:
        """Tell the teacher, at most once in a while, that a process has not begun, and what helps."""
        now = time.monotonic()
        if now - self.told >= self.limits.start:
            self.told = now
            print(
                f"grade: after {self.limits.start:g} s, Python has not begun to run a notebook: this machine is busy, "
                "or its disk is slow. The run goes on and costs nobody points. If it takes too long, stop it with "
                "Ctrl-C, and run the same command again with --jobs 1; finished grades are kept",
                file=sys.stderr,
                flush=True,
            )

    def command(self, limits: dict[str, int], does: str = "child.main()") -> list[str]:
        """The command line, isolated or not. A shell sets limits and opens the filter, so that they cover pid 1 too."""
        inside = Path("/grader") if self.isolated else self.folder / "grader"
        where = [str(inside), *map(str, self.packages)]
        start = f"import gc, sys; gc.disable(); sys.path += {where!r}; sys.dont_write_bytecode = True"
        program = f"{start}\nfrom subnorm_classroom.grading import child\nchild.ROOT = {str(inside)!r}\n{does}"
        python = [str(self.python), "-I", "-S", "-B"]
        if not self.isolated:
            return [*python, "-c", program]
        shell = [f"ulimit -{ULIMIT[name][0]} {within(name, limits[name]) // ULIMIT[name][1]}" for name in limits]
        filtered = '--seccomp 9 "$@" 9<"$0"' if calls.program() else '"$@"'
        bwrap = shlex.quote(shutil.which("bwrap") or "bwrap")
        script = " && ".join([*shell, f"exec {bwrap} {filtered}"])
        return ["/bin/sh", "-c", script, str(self.folder / "calls"), *self.bwrap_arguments(), *python, "-c", program]

    def bwrap_arguments(self) -> list[str]:
        """The arguments of bubblewrap: mount the listed paths read-only, and nothing else."""
        args = ["--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--uid", "65534"]
        args += ["--gid", "65534", "--disable-userns", "--dev", "/dev"]
        args += ["--size", str(self.limits.scratch), "--tmpfs", "/tmp"]  # first: packages may be below /tmp
        roots = [Path("/usr"), Path(sys.base_prefix).resolve(), self.python.parent.parent, *self.packages]
        mounted: list[Path] = []
        for root in sorted(set(roots), key=lambda path: len(path.parts)):
            if not any(root.is_relative_to(other) for other in mounted):
                mounted.append(root)
                args += ["--ro-bind", str(root), str(root)]
        if wide := [root for root in mounted if root != Path("/usr") and Path.home().is_relative_to(root)]:
            raise NoSandbox(f"Python is in {wide[0]}, and so is your home: use a Python of the system or of pyenv.")
        for name in ("/bin", "/lib", "/lib32", "/lib64"):
            path = Path(name)
            if path.is_symlink():
                args += ["--symlink", str(path.readlink()), name]
            elif path.is_dir():
                args += ["--ro-bind", name, name]
        for name in ("/etc/ld.so.cache", "/etc/alternatives"):  # where libraries are found
            args += ["--ro-bind-try", name, name]
        args += ["--ro-bind", str(self.folder / "passwd"), "/etc/passwd"]
        for name in CPU:
            args += ["--ro-bind-try", name, name]
        args += ["--ro-bind", str(self.folder / "grader"), "/grader"]
        covered = {*self.hidden, *(folder / name for folder in self.packages for name in PACKAGES)}
        for path in sorted(covered):
            if not any(path.is_relative_to(root) for root in mounted):
                continue
            if path.is_dir():
                args += ["--tmpfs", str(path), "--remount-ro", str(path)]
            elif path.exists():
                args += ["--ro-bind", os.devnull, str(path)]
        return [*args, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp"]

    def environment(self) -> dict[str, str]:
        home = "/tmp" if self.isolated else str(self.folder)
        one = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL", "NUMEXPR")}
        path = "/usr/bin:/bin"
        return {"PATH": path, "HOME": home, "LANG": "C.UTF-8", "MPLBACKEND": "Agg", "MPLCONFIGDIR": home, **one}

    def run(self, job: dict[str, Any], listen: Callable[[dict[str, Any]], None], until: float) -> Ending:
        """Run a job and pass on its messages as they arrive.

        Args:
            job: cells, questions, and whether PyTorch is needed.
            listen: called with each message, which comes from the student's process and cannot be trusted.
            until: the deadline, as time.monotonic().
        """
        limits = self.limits
        seconds = int(limits.total) + 10
        address = limits.torch_address if job["torch"] else limits.address
        hard = {"AS": address, "CPU": seconds, "FSIZE": limits.file, "NOFILE": limits.open_files, "CORE": 0}
        inside = {**hard, "NPROC": limits.processes} if self.isolated else hard  # outside it counts the teacher's too
        with contextlib.ExitStack() as stack:
            with usable_temporary_folder():
                stdin = stack.enter_context(tempfile.TemporaryFile())
                stdin.write(json.dumps({**job, "limits": inside}).encode())
                stdin.seek(0)
                cwd = self.folder
                if not self.isolated:
                    cwd = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
            process = subprocess.Popen(
                self.command(hard),
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=self.environment(),
                cwd=cwd,
                start_new_session=True,
                bufsize=0,
            )
            try:
                assert process.stdout is not None
                return self.follow(process, process.stdout, len(job["questions"]), listen, until)
            finally:
                end(process)

    def follow(
        self,
        process: subprocess.Popen[bytes],
        pipe: IO[bytes],
        questions: int,
        listen: Callable[[dict[str, Any]], None],
        until: float,
    ) -> Ending:
        """Read a process's messages until it ends or breaks a limit; then the rest, which shows how far it got."""
        limits = self.limits
        here = Ending("killed", "start")
        allowed = {"cell": limits.cell, "question": limits.question, "end": limits.question}
        deadline = math.inf  # nothing of the student runs before the first cell
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        rest, left, watched, fault = b"", LARGEST * (2 * questions + 2), 0.0, ""
        begun = before = time.monotonic()
        while True:
            now = time.monotonic()
            if now - before > limits.stall:
                until, deadline = until + now - before, deadline + now - before
            before = now
            if here.at == "start" and now - begun > limits.start:
                self.tell_that_it_waits()
            if not fault and now > deadline:
                fault = "timeout"
            elif not fault and now - watched > limits.watch:
                watched = now
                fault = excess(process.pid, limits)
            if fault:
                kill(process)
            more = poll.poll(1000 * limits.watch)
            if not more and not fault:
                continue
            data = os.read(pipe.fileno(), 1 << 16) if more else b""
            if not data:  # the process has ended, or closed its end of the pipe
                here.how = fault or ("end" if here.at == "end" else here.how)
                return here
            left -= len(data)
            *lines, rest = (rest + data).split(b"\n")
            if left < 0 or len(rest) > LARGEST:
                here.how = "output"
                return here
            for line in lines:
                message = read_message(line)
                at = message.get("at")
                if isinstance(at, str) and at in allowed:
                    if here.at == "start":
                        until += time.monotonic() - begun
                    here = Ending("killed", at, message.get("cell", message.get("question")))
                    deadline = min(until, time.monotonic() + allowed[at])
                listen(message)


@contextlib.contextmanager
def usable_temporary_folder() -> Iterator[None]:
    """Raise NoSandbox instead of an OSError."""
    try:
        yield
    except OSError as error:
        where = tempfile.tempdir or os.environ.get("TMPDIR", "/tmp")
        raise NoSandbox(
            f"the temporary folder {where} cannot be used: {error.strerror}. Make room there, or set the environment "
            "variable TMPDIR to another folder. Finished grades are kept: then run the same command again."
        ) from error


def within(name: str, limit: int) -> int:
    """A limit, reduced to this process's own hard limit."""
    import resource  # not on Windows

    hard = resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[1]
    return limit if hard == resource.RLIM_INFINITY else min(limit, hard)


def installed_in() -> list[str]:
    """The folders of installed packages: NumPy's, and those of IPython and PyTorch if they are elsewhere."""
    found = [importlib.util.find_spec(name) for name in ("numpy", "IPython", "torch")]
    folders = [str(Path(spec.origin).parents[1]) for spec in found if spec and spec.origin]
    return list(dict.fromkeys(folders))


def read_message(line: bytes) -> dict[str, Any]:
    """A line as a JSON object, all of whose texts can be written to a file; empty if it is not one."""
    try:
        message = json.loads(line)
        if b"\\u" in line:  # perhaps half a character
            message = json.loads(json.dumps(message, ensure_ascii=False).encode(errors="replace"))
    except (ValueError, RecursionError, MemoryError):
        return {}
    return message if isinstance(message, dict) else {}


def tree(pid: int) -> list[int]:
    """A process and its descendants; only the process if the kernel does not list its children."""
    found, left = [], [pid]
    while left:
        found.append(left.pop())
        task = f"/proc/{found[-1]}/task"
        with contextlib.suppress(OSError):
            for thread in os.listdir(task):  # noqa: PTH208, as below
                with contextlib.suppress(OSError), open(f"{task}/{thread}/children", "rb") as children:  # noqa: PTH123
                    left += map(int, children.read().split())
    return found


def excess(pid: int, limits: Limits) -> str:
    """The limit that a process and its descendants exceed: "processes", "memory", or empty for none."""
    threads = pages = 0
    number = pid
    for number in tree(pid):
        with contextlib.suppress(OSError, IndexError):
            threads += len(os.listdir(f"/proc/{number}/task"))  # noqa: PTH208, called forty times a second
            pages += int(Path(f"/proc/{number}/statm").read_text().split()[1])
    with contextlib.suppress(OSError):
        scratch = os.statvfs(f"/proc/{number}/root/tmp")  # /tmp of the innermost process, once it is in the sandbox
        inside = scratch.f_blocks * scratch.f_frsize == limits.scratch
        if inside and scratch.f_files - scratch.f_ffree > limits.scratch_files:
            return "memory"
    if threads > limits.processes + 3:  # bubblewrap has two, and one may just be starting
        return "processes"
    return "memory" if pages * resource_page() > limits.memory else ""


def resource_page() -> int:
    return os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and its group. Under bubblewrap this kills everything in the sandbox."""
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and its group, and wait for it."""
    kill(process)
    process.wait()
    if process.stdout:
        process.stdout.close()
