"""The system calls that the user's code may make, as a BPF program for seccomp.

    architecture known? -> number allowed? -> arguments allowed? -> allow, else EPERM

It is an allowlist, so calls that later kernels add are refused. Code may use memory, time, its own
threads and the two pipes. In a file system of its own it may also read; in the machine's, no call
with a path is allowed, so that it cannot even find out whether a file exists.

Sources: linux/seccomp.h, linux/filter.h, linux/audit.h; numbers from the tables of Linux for each
architecture.
"""

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

LOAD: Final = 0x20
EQUALS: Final = 0x15
AT_LEAST: Final = 0x35
ANY_BIT: Final = 0x45
RETURN: Final = 0x06
JUMP: Final = 0x05

ALLOW: Final = 0x7FFF0000
KILL: Final = 0x80000000
ERRNO: Final = 0x00050000
EPERM: Final = 1
ENOSYS: Final = 38

NUMBER: Final = 0
ARCHITECTURE: Final = 4
ARGUMENTS: Final = 16

ARCHITECTURES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
X32: Final = 0x40000000
"""On x86-64, call numbers from here on belong to the x32 ABI."""

PLAIN: Final[Mapping[str, tuple[int | None, int | None]]] = {
    "read": (0, 63),
    "write": (1, 64),
    "mremap": (25, 216),
    "munmap": (11, 215),
    "brk": (12, 214),
    "readv": (19, 65),
    "writev": (20, 66),
    "pread64": (17, 67),
    "close": (3, 57),
    "close_range": (436, 436),
    "fstat": (5, 80),
    "lseek": (8, 62),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "rt_sigpending": (127, 136),
    "rt_sigtimedwait": (128, 137),
    "sigaltstack": (131, 132),
    "nanosleep": (35, 101),
    "gettimeofday": (96, 169),
    "time": (201, None),
    "times": (100, 153),
    "getpid": (39, 172),
    "gettid": (186, 178),
    "getppid": (110, 173),
    "getuid": (102, 174),
    "geteuid": (107, 175),
    "getgid": (104, 176),
    "getegid": (108, 177),
    "getrandom": (318, 278),
    "sched_yield": (24, 124),
    "exit": (60, 93),
    "exit_group": (231, 94),
    "set_robust_list": (273, 99),
    "set_tid_address": (218, 96),
    "rseq": (334, 293),
    "restart_syscall": (219, 128),
    "getrusage": (98, 165),
    "getrlimit": (97, 163),
    "sysinfo": (99, 179),
    "uname": (63, 160),
    "poll": (7, None),
    "ppoll": (271, 73),
    "select": (23, None),
    "pselect6": (270, 72),
    "dup": (32, 23),
    "dup2": (33, None),
    "dup3": (292, 24),
    "setitimer": (38, 103),
    "getitimer": (36, 102),
    "alarm": (37, None),
    "pause": (34, None),
}
"""Call numbers on x86-64 and aarch64, frequent calls first; None: there is no such call."""

READING: Final[Mapping[str, tuple[int | None, int | None]]] = {
    "stat": (4, None),
    "lstat": (6, None),
    "newfstatat": (262, 79),
    "statx": (332, 291),
    "access": (21, None),
    "faccessat": (269, 48),
    "faccessat2": (439, 439),
    "readlink": (89, None),
    "readlinkat": (267, 78),
    "getdents64": (217, 61),
    "getcwd": (79, 17),
}
"""Calls to look up paths, also allowed in a file system of its own."""

LEAVING_ROOT: Final[Mapping[str, tuple[int | None, int | None]]] = {
    "setgroups": (116, 159),
    "setresgid": (119, 149),
    "setresuid": (117, 147),
    "prctl": (157, 167),
    "capset": (126, 91),
    "seccomp": (317, 277),
}
"""Calls to drop privileges, also allowed until the code runs."""

THREAD_FLAG: Final = 0x00010000
REFUSED_CLONES: Final = 0x7E823080
"""Flags of `clone` for namespaces, tracing and process descriptors."""
PROT_WRITE: Final = 2
PROT_EXEC: Final = 4
MAP_ANONYMOUS: Final = 0x20
SCARCE_MEMORY: Final = 0x2000 | 0x40000
"""Flags of `mmap` for locked memory and huge pages, which are refused."""
ADVICE: Final = (0, 1, 2, 3, 4, 8, 14, 15, 16, 17)
"""Allowed advice of `madvise`: access pattern, freeing, huge pages, core dumps. Not merging with
the memory of other processes, poisoning, or hiding from a fork."""
FUTEX_ALONE: Final = (0, 1, 3, 4, 5, 9, 10)
"""Allowed futex operations: wait, wake and requeue. Not priority inheritance, which takes a process
id and so reveals whether that process exists."""
FUTEX_PRIVATE: Final = 128
FUTEX_REALTIME: Final = 256
GO_ON: Final = 18
"""SIGCONT, which a thread could use to continue the process that is stopped between calls."""
OTHERS_CLOCK: Final = 0x80000000
"""The sign bit of a clock id: negative ids are clocks of other processes or threads."""
WRITING: Final = 0x3 | 0x40 | 0x200 | 0x400
"""Flags of `open` that write, create, truncate or append."""
TMPFILE: Final = 0x400000
TERMINAL_QUESTIONS: Final = (0x5401, 0x5451, 0x5450)
DESCRIPTOR_QUESTIONS: Final = (0, 1, 2, 3, 1030)


class Reach(Enum):
    """Which calls a process may make besides those to compute."""

    COMPUTES = "computes"
    READS = "reads"
    """Read files; it has a file system of its own."""
    PREPARES = "prepares"
    """Read files and drop privileges, before the code runs."""


@dataclass(frozen=True, slots=True)
class Test:
    """A condition on one half, 32 bits, of an argument of a call."""

    argument: int
    kind: str
    """`one of`: equal to one of the values; `not`: not equal to the value; `none of`: none of the
    value's bits is set; `all of`: the value is a single bit, and it is set."""
    values: tuple[int, ...]
    is_high: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """A call that is allowed if all of its tests hold."""

    numbers: tuple[int | None, int | None]
    tests: tuple[Test, ...]


def rules_of(process_id: int, reach: Reach) -> list[Rule]:
    """The calls that are allowed with certain arguments only."""
    itself = Test(0, "one of", (process_id,))
    nothing = (Test(2, "one of", (0,)), Test(2, "one of", (0,), is_high=True))
    one_clock = (Test(0, "none of", (OTHERS_CLOCK,)),)
    plenty = Test(3, "none of", (SCARCE_MEMORY,))
    waits = tuple(
        operation | flags
        for flags in (FUTEX_PRIVATE, FUTEX_PRIVATE | FUTEX_REALTIME, 0, FUTEX_REALTIME)
        for operation in FUTEX_ALONE
    )
    rules = [
        Rule((202, 98), (Test(1, "one of", waits),)),  # futex
        Rule((228, 113), one_clock),  # clock_gettime
        Rule((229, 114), one_clock),  # clock_getres
        Rule((230, 115), one_clock),  # clock_nanosleep
        Rule((28, 233), (Test(2, "one of", ADVICE),)),  # madvise
        Rule((204, 123), (Test(0, "one of", (0, process_id)),)),  # sched_getaffinity
        Rule((10, 226), (Test(2, "none of", (PROT_EXEC,)),)),  # mprotect
        Rule((9, 222), (Test(2, "none of", (PROT_EXEC,)), plenty)),  # mmap
        Rule((56, 220), (Test(0, "all of", (THREAD_FLAG,)), Test(0, "none of", (REFUSED_CLONES,)))),
        Rule((234, 131), (itself, Test(2, "not", (GO_ON,)))),  # tgkill
        Rule((62, 129), (itself, Test(1, "not", (GO_ON,)))),  # kill
        Rule((302, 261), (Test(0, "one of", (0,)), *nothing)),  # prlimit64, to read
        Rule((72, 25), (Test(1, "one of", DESCRIPTOR_QUESTIONS),)),  # fcntl
        Rule((16, 29), (Test(1, "one of", TERMINAL_QUESTIONS),)),  # ioctl
    ]
    if reach is not Reach.COMPUTES:
        from_a_file = Test(3, "none of", (MAP_ANONYMOUS | SCARCE_MEMORY,))
        as_it_is = Test(2, "none of", (PROT_WRITE,))
        rules += [
            Rule((9, 222), (from_a_file, as_it_is)),  # mmap of a library's code
            Rule((257, 56), (Test(2, "none of", (WRITING | TMPFILE,)),)),  # openat
            Rule((2, None), (Test(1, "none of", (WRITING | TMPFILE,)),)),  # open
        ]
    return rules


def program(machine: str, process_id: int, reach: Reach) -> bytes:
    """The BPF program for the process with this id. `machine`: `x86_64` or `aarch64`, as
    `platform.machine()` returns it."""
    column = 0 if machine == "x86_64" else 1
    plain = {
        Reach.COMPUTES: PLAIN,
        Reach.READS: {**PLAIN, **READING},
        Reach.PREPARES: {**PLAIN, **READING, **LEAVING_ROOT},
    }[reach]
    steps = [
        _step(LOAD, ARCHITECTURE),
        _step(EQUALS, ARCHITECTURES[machine], 1, 0),
        _step(RETURN, KILL),
        _step(LOAD, NUMBER),
    ]
    if machine == "x86_64":
        steps += [_step(AT_LEAST, X32, 0, 1), _step(RETURN, KILL)]
    for numbers in plain.values():
        number = numbers[column]
        if number is not None:
            steps += [_step(EQUALS, number, 0, 1), _step(RETURN, ALLOW)]
    for rule in rules_of(process_id, reach):
        number = rule.numbers[column]
        if number is not None:
            body = _body(rule.tests)
            steps += [_step(EQUALS, number, 0, len(body)), *body]
    clone3 = 435
    steps += [_step(EQUALS, clone3, 0, 1), _step(RETURN, ERRNO | ENOSYS)]
    steps += [_step(RETURN, ERRNO | EPERM)]
    return b"".join(steps)


def _body(tests: Iterable[Test]) -> list[bytes]:
    """Instructions that allow the call if all tests hold, else load its number and continue."""
    checks: list[list[bytes]] = []
    for test in tests:
        at = ARGUMENTS + 8 * test.argument + (4 if test.is_high else 0)
        checks.append([_step(LOAD, at), *_condition(test)])
    allow = _step(RETURN, ALLOW)
    size = sum(len(steps) + 1 for steps in checks) + 1
    body: list[bytes] = []
    for steps in checks:
        body += steps
        # A test that fails falls on this step: over the rest, to where the number is loaded again.
        body.append(_step(JUMP, size - len(body) - 1))
    return [*body, allow, _step(LOAD, NUMBER)]


def _condition(test: Test) -> list[bytes]:
    """Instructions that skip the next one if the test holds."""
    match test.kind:
        case "one of":
            count = len(test.values)
            return [_step(EQUALS, value, count - at, 0) for at, value in enumerate(test.values)]
        case "not":
            return [_step(EQUALS, test.values[0], 0, 1)]
        case "all of":
            return [_step(ANY_BIT, test.values[0], 1, 0)]
        case _:
            return [_step(ANY_BIT, test.values[0], 0, 1)]


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)
