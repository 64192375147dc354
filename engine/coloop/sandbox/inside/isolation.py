"""Levels of isolation of the user's code.

    NAMESPACES   a read-only root with nothing but the libraries; no network, no other processes, an
                 unprivileged user; also Landlock and an allowlist of system calls
    CALLS        without namespaces, as in many containers: modules that the code imports are loaded
                 first, then no system call with a path is allowed
    NONE         only resource limits, and the audit hook, which hostile code can remove

The watcher calls `enter` before it forks; the worker calls `shut` before it runs the code. Neither
can be undone.
"""

import os
import resource
import stat
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Final

from coloop.sandbox.inside import calls, kernel
from coloop.sandbox.inside.calls import Reach

NOBODY: Final = 65534
FIRST_OWN_USER: Final = 0x70000000
"""First of the user ids, up to 2^31, that systems do not assign."""

OWN_THREADS: Final = 64
SHARED_THREADS: Final = 1024
"""Maximum threads of a worker if its user may have other processes, besides their threads."""

SYSTEM_LIBRARIES: Final = (
    *("/lib", "/lib64", "/lib32", "/libx32", "/usr/lib", "/usr/lib64", "/usr/local/lib"),
    "/etc/ld.so.cache",
)
"""Where the loader finds shared libraries."""

DEVICES: Final = ("/dev/urandom", "/dev/random")
"""Sources of random numbers, which libraries such as torch read when they are imported."""

PLACES: Final = ("/tmp", "/run", "/mnt", "/home", "/var")
"""Mount points for the new root; the first that exists is used. Nothing is written to it."""


class Isolation(StrEnum):
    """How strongly a loop's code is separated from the machine, strongest first."""

    NAMESPACES = "namespaces"
    CALLS = "calls"
    NONE = "none"


def enter(isolation: Isolation, libraries: Sequence[str]) -> int:
    """Begin an isolation in the watcher, before it forks the worker.

    Args:
        libraries: folders that Python imports from.

    Returns:
        The thread limit of the worker's user, for `shut`; 0 without isolation.

    Raises:
        OSError: this machine does not support it; the process must not be used further.
    """
    if isolation is Isolation.NONE:
        return 0
    if not kernel.IS_KNOWN:
        raise OSError(38, "only Linux on x86-64 and aarch64 has it")
    user = os.geteuid()
    if user == 0 and not kernel.holds(kernel.CAP_KILL):
        why = "root lacks CAP_KILL here, so code could not be stopped"
        raise OSError(1, f"{why}: add it, or start as another user")
    counts_apart = isolation is Isolation.NAMESPACES and kernel.counts_in_namespaces()
    most = OWN_THREADS if user == 0 or counts_apart else SHARED_THREADS + threads_of(user)
    if isolation is Isolation.NAMESPACES:
        _separate(libraries)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    return most


def threads_of(user: int) -> int:
    count = 0
    for process in Path("/proc").iterdir() if os.path.isdir("/proc") else ():
        if not process.name.isdecimal():
            continue
        with suppress(OSError, ValueError, KeyError):
            lines = (process / "status").read_text(encoding="utf-8", errors="replace").splitlines()
            told = dict(line.split(":", 1) for line in lines if ":" in line)
            if int(told["Uid"].split()[0]) == user:
                count += int(told["Threads"])
    return count


def _separate(libraries: Sequence[str]) -> None:
    apart = (
        kernel.CLONE_NEWNS | kernel.CLONE_NEWNET | kernel.CLONE_NEWPID
        | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS
    )  # fmt: skip
    user, group = os.geteuid(), os.getegid()
    is_root = user == 0
    kernel.unshare(apart if is_root else apart | kernel.CLONE_NEWUSER)
    if not is_root:
        Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        Path("/proc/self/uid_map").write_text(f"{NOBODY} {user} 1", encoding="ascii")
        Path("/proc/self/gid_map").write_text(f"{NOBODY} {group} 1", encoding="ascii")
    kernel.set_host_name(b"sandbox")
    _own_root(libraries)
    if is_root:
        become_nobody()


def _own_root(libraries: Sequence[str]) -> None:
    """Change to a new read-only root that has only the libraries, at their usual paths."""
    followed = [os.path.realpath(path) for path in libraries]
    shown = _outermost([*libraries, *followed, *SYSTEM_LIBRARIES])
    links = {path: os.readlink(path) for path in shown if os.path.islink(path)}
    places = {path: os.path.realpath(path) for path in shown if path not in links}
    kernel.mount(None, "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    limits = kernel.MS_NOSUID | kernel.MS_NODEV
    root = next((folder for folder in PLACES if os.path.isdir(folder)), None)
    if root is None:
        raise OSError(2, f"no folder can hold the sandbox's root: {', '.join(PLACES)}")
    kernel.mount("tmpfs", root, "tmpfs", limits, "mode=0755,size=1m")
    os.mkdir(f"{root}/outside", 0o700)
    kernel.pivot_root(root, f"{root}/outside")
    os.chdir("/")
    for path, target in links.items():
        os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
        os.symlink(target, path)
    for path, real in places.items():
        source = f"/outside{real}"
        if os.path.isdir(source):
            os.makedirs(path, 0o755, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))
        kernel.mount(source, path, None, kernel.MS_BIND | kernel.MS_REC)
        kernel.make_read_only(path)
    _show_devices()
    kernel.unmount("/outside")
    os.rmdir("/outside")
    kernel.mount(None, "/", None, kernel.MS_REMOUNT | kernel.MS_RDONLY | limits)


def _show_devices() -> None:
    """Mount DEVICES, those that the machine has and its kernel allows."""
    os.makedirs("/dev", 0o755, exist_ok=True)
    for path in DEVICES:
        source = f"/outside{path}"
        if not os.path.exists(source) or not stat.S_ISCHR(os.stat(source).st_mode):
            continue
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o444))
        try:
            kernel.mount(source, path, None, kernel.MS_BIND)
            kernel.make_read_only(path, is_device=True)
        except OSError:
            with suppress(OSError):
                kernel.unmount(path)
            os.unlink(path)


def _outermost(paths: Sequence[str]) -> list[str]:
    """Those of the paths that exist and are not inside another one, links first."""
    there = dict.fromkeys(os.path.abspath(path) for path in paths if os.path.exists(path))
    kept = [
        path
        for path in there
        if not any(path.startswith(other + os.sep) for other in there if other != path)
    ]
    return sorted(kept, key=lambda path: (not os.path.islink(path), path))


def become_nobody() -> None:
    """Change permanently from root to a random unused user id, or to `nobody` if the container does
    not map such ids."""
    own = FIRST_OWN_USER + int.from_bytes(os.urandom(3), "big")
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    try:
        os.setresuid(own, own, own)
    except OSError:
        os.setresuid(NOBODY, NOBODY, NOBODY)


def shut(
    isolation: Isolation,
    libraries: Sequence[str],
    memory_bytes: int,
    most_threads: int,
    prepare: Callable[[], None],
) -> None:
    """Finish the isolation in the worker; this cannot be undone.

    Args:
        libraries: folders that Python imports from.
        memory_bytes: limit of its address space.
        most_threads: the limit that `enter` returned.
        prepare: with `Isolation.CALLS`, called while files can still be read.

    Raises:
        OSError: the isolation failed; the code must not run.
    """
    limit(memory_bytes, most_threads)
    if isolation is Isolation.NONE:
        return
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    if os.geteuid() != 0:
        kernel.drop_capabilities()
    shared = [*libraries, *SYSTEM_LIBRARIES, *DEVICES]
    readable = ["/"] if isolation is Isolation.NAMESPACES else shared
    if kernel.landlock_version():
        kernel.landlock([path for path in readable if os.path.exists(path)])
    process_id = os.getpid()
    if isolation is Isolation.CALLS:
        kernel.seccomp(calls.program(kernel.MACHINE, process_id, Reach.PREPARES))
        prepare()
        if os.geteuid() == 0:
            become_nobody()
            kernel.drop_capabilities()
            die_with_parent()  # another user than its parent's: the kernel had forgotten it
    reach = Reach.READS if isolation is Isolation.NAMESPACES else Reach.COMPUTES
    kernel.seccomp(calls.program(kernel.MACHINE, process_id, reach))
    with suppress(PermissionError):
        os.getsid(0)  # is not in the list
        raise OSError(38, "the kernel took the list of calls and does not keep to it")


def limit(memory_bytes: int, most_threads: int) -> None:
    limits = {
        resource.RLIMIT_AS: memory_bytes,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: 64,
        resource.RLIMIT_NPROC: most_threads,
        resource.RLIMIT_MEMLOCK: 0,
    }
    if hasattr(resource, "RLIMIT_SIGPENDING"):
        limits[resource.RLIMIT_SIGPENDING] = 64
    for name, most in limits.items():
        with suppress(ValueError, OSError):  # the system has no such limit
            resource.setrlimit(name, (most, most))


def die_with_parent() -> None:
    """Let the kernel kill this process when its parent ends (Linux only)."""
    if sys.platform == "linux":
        kernel.prctl(kernel.PR_SET_PDEATHSIG, 9)
