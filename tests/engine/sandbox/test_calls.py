"""The filter of calls, run by a BPF machine of four instructions, on both architectures."""

import re
import struct
from pathlib import Path

import pytest

from coloop.sandbox.inside import kernel
from coloop.sandbox.inside.calls import (
    ALLOW,
    ARCHITECTURES,
    ENOSYS,
    EPERM,
    ERRNO,
    KILL,
    LEAVING_ROOT,
    PLAIN,
    READING,
    Reach,
    program,
)

MACHINES = ("x86_64", "aarch64")
PROCESS = 7
REFUSED, ABSENT = ERRNO | EPERM, ERRNO | ENOSYS

CALLS = {
    "futex": (202, 98),
    "madvise": (28, 233),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115),
    "sched_getaffinity": (204, 123),
    "mprotect": (10, 226),
    "mmap": (9, 222),
    "clone": (56, 220),
    "clone3": (435, 435),
    "tgkill": (234, 131),
    "kill": (62, 129),
    "prlimit64": (302, 261),
    "fcntl": (72, 25),
    "ioctl": (16, 29),
    "openat": (257, 56),
    "ptrace": (101, 117),
    "execve": (59, 221),
    "socket": (41, 198),
    "io_uring_setup": (425, 425),
    "bpf": (321, 280),
    "memfd_create": (319, 279),
    "unshare": (272, 97),
    "mount": (165, 40),
    "pidfd_open": (434, 434),
    "process_vm_readv": (310, 270),
    "setrlimit": (160, 164),
    "unlinkat": (263, 35),
    "get_robust_list": (274, 100),
    "membarrier": (324, 283),
    "mincore": (27, 232),
    "never heard of": (999, 999),
}


def answer(machine: str, reach: Reach, number: int, *arguments: int, claims: int = 0) -> int:
    """What the filter says of a call."""
    given = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("IIQ6Q", number, claims or ARCHITECTURES[machine], 0, *given)
    steps = list(struct.iter_unpack("HBBI", program(machine, PROCESS, reach)))
    at = value = 0
    while True:
        code, if_true, if_false, constant = steps[at]
        at += 1
        match code:
            case 0x20:
                value = struct.unpack_from("I", data, constant)[0]
            case 0x15:
                at += if_true if value == constant else if_false
            case 0x35:
                at += if_true if value >= constant else if_false
            case 0x45:
                at += if_true if value & constant else if_false
            case 0x05:
                at += constant
            case 0x06:
                return int(constant)
            case _:
                raise AssertionError(f"no such instruction: {code:#x}")


def says(machine: str, reach: Reach, name: str, *arguments: int) -> int:
    return answer(machine, reach, CALLS[name][MACHINES.index(machine)], *arguments)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("reach", Reach)
def test_calls_of_the_list_pass_and_no_other(machine: str, reach: Reach) -> None:
    place = MACHINES.index(machine)
    listed = {**PLAIN}
    listed |= READING if reach is not Reach.COMPUTES else {}
    listed |= LEAVING_ROOT if reach is Reach.PREPARES else {}
    ruled = {"mprotect", "mmap", "clone", "clone3", "tgkill", "kill", "prlimit64", "fcntl"}
    ruled |= {"futex", "madvise", "clock_gettime", "clock_getres", "clock_nanosleep"}
    ruled |= {"sched_getaffinity"}
    with_rules = {CALLS[name][place] for name in (*ruled, "ioctl", "openat")} | {2}
    allowed = {numbers[place] for numbers in listed.values()}

    for number in set(range(600)) - with_rules:
        wanted = ALLOW if number in allowed else REFUSED
        assert answer(machine, reach, number) == wanted, number


@pytest.mark.parametrize("machine", MACHINES)
def test_another_architecture_ends_the_process(machine: str) -> None:
    assert answer(machine, Reach.READS, 0, claims=0x40000003) == KILL
    if machine == "x86_64":
        assert answer(machine, Reach.READS, 0x40000000 + 39) == KILL


@pytest.mark.parametrize("machine", MACHINES)
def test_a_thread_may_be_started_and_nothing_else(machine: str) -> None:
    of_a_thread = 0x3D0F00
    for reach in Reach:
        assert says(machine, reach, "clone", of_a_thread) == ALLOW
        assert says(machine, reach, "clone", 17) == REFUSED
        assert says(machine, reach, "clone", of_a_thread | 0x10000000) == REFUSED
        assert says(machine, reach, "clone3") == ABSENT


@pytest.mark.parametrize("machine", MACHINES)
def test_signals_reach_the_process_itself_alone(machine: str) -> None:
    for name in ("kill", "tgkill"):
        assert says(machine, Reach.READS, name, PROCESS, PROCESS) == ALLOW
        for other in (0, 1, PROCESS + 1, 0xFFFFFFFF):
            assert says(machine, Reach.READS, name, other, PROCESS) == REFUSED
    go_on = 18
    assert says(machine, Reach.READS, "kill", PROCESS, go_on) == REFUSED
    assert says(machine, Reach.READS, "tgkill", PROCESS, PROCESS, go_on) == REFUSED
    assert says(machine, Reach.READS, "tgkill", PROCESS, go_on, 6) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_data_never_becomes_code(machine: str) -> None:
    private, anonymous = 0x02, 0x20
    assert says(machine, Reach.READS, "mmap", 0, 4096, 3, private | anonymous) == ALLOW
    assert says(machine, Reach.READS, "mmap", 0, 4096, 5, private) == ALLOW
    assert says(machine, Reach.READS, "mmap", 0, 4096, 5, private | anonymous) == REFUSED
    assert says(machine, Reach.COMPUTES, "mmap", 0, 4096, 5, private) == REFUSED
    for writable in (6, 7):
        assert says(machine, Reach.READS, "mmap", 0, 4096, writable, private) == REFUSED
    assert says(machine, Reach.READS, "mprotect", 0, 4096, 3) == ALLOW
    assert says(machine, Reach.READS, "mprotect", 0, 4096, 7) == REFUSED


@pytest.mark.parametrize("machine", MACHINES)
def test_files_are_opened_to_read_or_not_at_all(machine: str) -> None:
    close_on_exec, write, create, append = 0o2000000, 1, 0o100, 0o2000
    assert says(machine, Reach.READS, "openat", 0, 0, close_on_exec) == ALLOW
    assert says(machine, Reach.COMPUTES, "openat", 0, 0, close_on_exec) == REFUSED
    for flags in (write, 2, create, append, 0o1000, 0o20000000):
        assert says(machine, Reach.READS, "openat", 0, 0, flags) == REFUSED


@pytest.mark.parametrize("machine", MACHINES)
def test_limits_are_read_and_never_set(machine: str) -> None:
    assert says(machine, Reach.READS, "prlimit64", 0, 9, 0, 1) == ALLOW
    assert says(machine, Reach.READS, "prlimit64", 0, 9, 1, 0) == REFUSED
    assert says(machine, Reach.READS, "prlimit64", 0, 9, 1 << 32, 0) == REFUSED
    assert says(machine, Reach.READS, "prlimit64", 8, 9, 0, 1) == REFUSED


@pytest.mark.parametrize("machine", MACHINES)
def test_descriptors_answer_questions_only(machine: str) -> None:
    set_owner, set_flags, type_ahead = 8, 4, 0x5412
    assert says(machine, Reach.READS, "fcntl", 3, 1) == ALLOW
    assert says(machine, Reach.READS, "fcntl", 3, set_owner) == REFUSED
    assert says(machine, Reach.READS, "fcntl", 3, set_flags) == REFUSED
    assert says(machine, Reach.READS, "ioctl", 0, 0x5401) == ALLOW
    assert says(machine, Reach.READS, "ioctl", 0, type_ahead) == REFUSED


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("reach", Reach)
def test_memory_is_the_process_s_own_and_of_the_common_kind(machine: str, reach: Reach) -> None:
    private, anonymous, locked, large = 0x02, 0x20, 0x2000, 0x40000
    for scarce in (locked, large):
        assert says(machine, reach, "mmap", 0, 4096, 3, private | anonymous | scarce) == REFUSED
        assert says(machine, reach, "mmap", 0, 4096, 1, private | scarce) == REFUSED
    not_needed, freed, merged, poisoned = 4, 8, 12, 100
    for advice in (not_needed, freed):
        assert says(machine, reach, "madvise", 0, 4096, advice) == ALLOW
    for advice in (merged, poisoned):
        assert says(machine, reach, "madvise", 0, 4096, advice) == REFUSED


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("reach", Reach)
def test_no_question_is_about_another_process(machine: str, reach: Reach) -> None:
    its_clock = (~1234 << 3 | 2) & 0xFFFFFFFF
    for name in ("clock_gettime", "clock_getres", "clock_nanosleep"):
        assert says(machine, reach, name, 1) == ALLOW
        assert says(machine, reach, name, its_clock) == REFUSED
    assert says(machine, reach, "sched_getaffinity", 0) == ALLOW
    assert says(machine, reach, "sched_getaffinity", PROCESS) == ALLOW
    assert says(machine, reach, "sched_getaffinity", PROCESS + 1) == REFUSED


@pytest.mark.parametrize("machine", MACHINES)
def test_locks_wait_and_wake_and_lend_no_priority(machine: str) -> None:
    private, realtime = 128, 256
    wait, wake, wait_bits, lock_pi, cmp_requeue_pi = 0, 1, 9, 6, 12
    for operation in (wait, wake, wait_bits, wait_bits | realtime):
        assert says(machine, Reach.COMPUTES, "futex", 0, operation) == ALLOW
        assert says(machine, Reach.COMPUTES, "futex", 0, operation | private) == ALLOW
    for operation in (lock_pi, cmp_requeue_pi, 7, 8, 11, 13, 2):
        assert says(machine, Reach.COMPUTES, "futex", 0, operation | private) == REFUSED


HEADERS = {
    "x86_64": "/usr/include/x86_64-linux-gnu/asm/unistd_64.h",
    "aarch64": "/usr/include/asm-generic/unistd.h",
}


@pytest.mark.parametrize("machine", MACHINES)
def test_numbers_are_those_of_the_kernel_s_own_table(machine: str) -> None:
    header = Path(HEADERS[machine])
    if not header.is_file():
        pytest.skip(f"no headers of the kernel: {header}")
    text = header.read_text(encoding="utf-8")
    table = {
        name: int(number)
        for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text)
    }
    called = {"newfstatat": "newfstatat" if machine == "x86_64" else "fstatat"}
    place = MACHINES.index(machine)

    for name, numbers in {**PLAIN, **READING, **LEAVING_ROOT, **CALLS}.items():
        if numbers[place] is not None and name != "never heard of":
            assert table[called.get(name, name)] == numbers[place], name
    for name, number in {
        "pivot_root": kernel._PIVOT_ROOT[machine],
        "capget": kernel._CAPGET[machine],
        "capset": kernel._CAPSET[machine],
        "seccomp": kernel._SECCOMP[machine],
        "mount_setattr": kernel._MOUNT_SETATTR,
        "landlock_create_ruleset": kernel._LANDLOCK_CREATE,
        "landlock_add_rule": kernel._LANDLOCK_ADD,
        "landlock_restrict_self": kernel._LANDLOCK_RESTRICT,
    }.items():
        assert table[name] == number, name
