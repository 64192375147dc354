"""The filter of calls, run by a BPF machine of four instructions, on both architectures."""

import struct

import pytest

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


@pytest.mark.parametrize("machine", MACHINES)
def test_data_never_becomes_code(machine: str) -> None:
    private, anonymous = 0x02, 0x20
    assert says(machine, Reach.READS, "mmap", 0, 4096, 3, private | anonymous) == ALLOW
    assert says(machine, Reach.READS, "mmap", 0, 4096, 5, private) == ALLOW
    assert says(machine, Reach.READS, "mmap", 0, 4096, 5, private | anonymous) == REFUSED
    assert says(machine, Reach.COMPUTES, "mmap", 0, 4096, 5, private) == REFUSED
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
