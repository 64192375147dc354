"""Linux system calls that Python has no function for, by ctypes, on x86-64 and aarch64.

Functions raise OSError if the kernel refuses, unless they say otherwise.
"""

import ctypes
import errno
import os
import platform
import struct
import sys
from contextlib import suppress
from typing import Final

MACHINE: Final = platform.machine()
IS_KNOWN: Final = sys.platform == "linux" and MACHINE in ("x86_64", "aarch64")

CLONE_NEWNS: Final = 0x00020000
CLONE_NEWUTS: Final = 0x04000000
CLONE_NEWIPC: Final = 0x08000000
CLONE_NEWUSER: Final = 0x10000000
CLONE_NEWPID: Final = 0x20000000
CLONE_NEWNET: Final = 0x40000000

MS_RDONLY: Final = 0x1
MS_NOSUID: Final = 0x2
MS_NODEV: Final = 0x4
MS_NOEXEC: Final = 0x8
MS_REMOUNT: Final = 0x20
MS_BIND: Final = 0x1000
MS_REC: Final = 0x4000
MS_PRIVATE: Final = 0x40000
MNT_DETACH: Final = 2
LOCKED_FLAGS: Final = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC | 0x400 | 0x800
"""Mount flags that a user namespace may not remove; statvfs uses the same bits."""

PR_SET_PDEATHSIG: Final = 1
PR_SET_DUMPABLE: Final = 4
PR_CAPBSET_DROP: Final = 24
PR_SET_NO_NEW_PRIVS: Final = 38

_PIVOT_ROOT: Final = {"x86_64": 155, "aarch64": 41}
_CAPGET: Final = {"x86_64": 125, "aarch64": 90}
_CAPSET: Final = {"x86_64": 126, "aarch64": 91}
_SECCOMP: Final = {"x86_64": 317, "aarch64": 277}
_MOUNT_SETATTR: Final = 442
_LANDLOCK_CREATE: Final = 444
_LANDLOCK_ADD: Final = 445
_LANDLOCK_RESTRICT: Final = 446

_AT_FDCWD: Final = -100
_AT_RECURSIVE: Final = 0x8000
CAP_KILL: Final = 5
_CAPABILITY_VERSION: Final = 0x20080522
_SECCOMP_FILTER: Final = 1
_ALL_THREADS: Final = 1
_SPEC_ALLOW: Final = 4
"""Flag of seccomp to leave CPU speculation enabled, which is faster."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _call(what: str, number: int, *arguments: int | bytes | None) -> int:
    given = [
        ctypes.c_long(argument) if isinstance(argument, int) else ctypes.c_char_p(argument)
        for argument in arguments
    ]
    return _checked(_libc.syscall(ctypes.c_long(number), *given), what)


def prctl(option: int, value: int = 0) -> None:
    _checked(_libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0), f"prctl {option}")


def keep_private() -> None:
    """Hide memory, environment and descriptors of this process from other processes of its user, if
    the system can. For servers and drivers, which hold tokens and keys. Programs that they start
    are not hidden, so give them no secrets."""
    if IS_KNOWN:
        with suppress(OSError):
            prctl(PR_SET_DUMPABLE, 0)


def counts_in_namespaces() -> bool:
    """Whether the thread limit counts separately in a user namespace: Linux 5.14 and later."""
    numbers = platform.release().split(".")
    try:
        return (int(numbers[0]), int(numbers[1].partition("-")[0])) >= (5, 14)
    except (IndexError, ValueError):
        return False


def unshare(flags: int) -> None:
    _checked(_libc.unshare(flags), "unshare")


def set_host_name(name: bytes) -> None:
    _checked(_libc.sethostname(name, len(name)), "sethostname")


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str = "") -> None:
    texts = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    _checked(
        _libc.mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3]),
        f"mount {target}",
    )


def make_read_only(target: str, *, is_device: bool = False) -> None:
    """Make a mount read-only, without set-user-id programs and, unless it is one, without devices;
    where the kernel can, also the mounts below it."""
    closed = MS_RDONLY | MS_NOSUID | (0 if is_device else MS_NODEV)
    attributes = struct.pack("QQQQ", closed, 0, 0, 0)
    try:
        _call(
            f"mount_setattr {target}",
            _MOUNT_SETATTR,
            *(_AT_FDCWD, os.fsencode(target), _AT_RECURSIVE, attributes, len(attributes)),
        )
    except OSError:
        kept = os.statvfs(target).f_flag & LOCKED_FLAGS
        flags = MS_BIND | MS_REMOUNT | closed | kept
        mount(None, target, None, flags)


def unmount(target: str) -> None:
    _checked(_libc.umount2(os.fsencode(target), MNT_DETACH), f"umount {target}")


def pivot_root(new: str, old: str) -> None:
    _call("pivot_root", _PIVOT_ROOT[MACHINE], os.fsencode(new), os.fsencode(old))


def drop_capabilities() -> None:
    """Drop all capabilities; from the bounding set too, if allowed."""
    for number in range(64):
        try:
            prctl(PR_CAPBSET_DROP, number)
        except OSError:
            break
    header = struct.pack("Ii", _CAPABILITY_VERSION, 0)
    _call("capset", _CAPSET[MACHINE], header, bytes(24))


def holds(capability: int) -> bool:
    """Whether this process has a capability with a number below 32."""
    header = struct.pack("Ii", _CAPABILITY_VERSION, 0)
    sets = ctypes.create_string_buffer(24)
    number = ctypes.c_long(_CAPGET[MACHINE])
    _checked(_libc.syscall(number, ctypes.c_char_p(header), sets), "capget")
    return bool(struct.unpack_from("I", sets)[0] >> capability & 1)


def landlock_version() -> int:
    """The Landlock version of this kernel; 0 without Landlock."""
    try:
        return _call("landlock", _LANDLOCK_CREATE, None, 0, 1)
    except OSError:
        return 0


def landlock(readable: list[str]) -> None:
    """Let this process only read these files and folders. Later kernels also refuse it TCP
    (Landlock 4) and signals to other processes (6)."""
    version = landlock_version()
    if version == 0:
        raise OSError(38, "this kernel has no Landlock")
    files = (1 << {1: 13, 2: 14, 3: 15, 4: 15}.get(version, 16)) - 1
    network, scopes = 0b11, 0b11
    attributes = struct.pack("Q", files)
    attributes += struct.pack("Q", network) if version >= 4 else b""
    attributes += struct.pack("Q", scopes) if version >= 6 else b""
    rules = _call("landlock", _LANDLOCK_CREATE, attributes, len(attributes), 0)
    read_file, read_folder = 1 << 2, 1 << 3
    try:
        for path in readable:
            folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
            try:
                allowed = read_file | (read_folder if os.path.isdir(path) else 0)
                rule = struct.pack("=Qi", allowed, folder)
                _call(f"landlock {path}", _LANDLOCK_ADD, rules, 1, rule, 0)
            finally:
                os.close(folder)
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        _call("landlock", _LANDLOCK_RESTRICT, rules, 0)
    finally:
        os.close(rules)


def seccomp(program: bytes) -> None:
    """Filter the system calls of this process, all its threads included, with a BPF program. Raises
    OSError also if a thread cannot be filtered."""
    buffer = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    flags = _ALL_THREADS | _SPEC_ALLOW
    try:
        left_out = _call("seccomp", _SECCOMP[MACHINE], _SECCOMP_FILTER, flags, header)
    except OSError:
        left_out = _call("seccomp", _SECCOMP[MACHINE], _SECCOMP_FILTER, _ALL_THREADS, header)
    if left_out != 0:
        raise OSError(errno.EPERM, f"seccomp: thread {left_out} is not filtered")
