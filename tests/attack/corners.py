"""Ways out that lie in the arguments of calls which computing needs: the second siege.

Written like `escapes`, whose prelude stands in front of each.
"""

from typing import Final

ASKED: Final = (
    "def differs(ask):\n"
    "    def asked(one):\n"
    "        try: ask(one); return 0\n"
    "        except OSError as error: return error.errno\n"
    "    return asked(other) != asked(4194303)\n"
)
"""Whether a question tells a process that is there from one that cannot be."""

MAP: Final = (
    "at = _libc.mmap; at.restype = ctypes.c_void_p\n"
    "def mapped(protection, flags, fd=-1):\n"
    "    found = at(None, ctypes.c_size_t(4096), protection, flags, fd, ctypes.c_long(0))\n"
    "    return found if found not in (None, 2 ** 64 - 1) else None\n"
)

MEMORY: Final = {
    "code written over a library's": (
        f"{MAP}fd = os.open(os.__file__, os.O_RDONLY)\n"
        "found = mapped(7, 0x02, fd)\n"
        "if not found: return False\n"
        "ctypes.memmove(found, b'\\xc3', 1)\n"
        "return ctypes.string_at(found, 1) == b'\\xc3'"
    ),
    "code in a library's memory made writable and back": (
        f"{MAP}fd = os.open(os.__file__, os.O_RDONLY)\n"
        "found = mapped(5, 0x02, fd)\n"
        "if not found: return False\n"
        "_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)\n"
        "if _libc.mprotect(found, 4096, 3): return False\n"
        "ctypes.memmove(found, b'\\xc3', 1)\n"
        "return _libc.mprotect(found, 4096, 5) == 0"
    ),
    "code in shared memory": f"{MAP}return mapped(7, 0x21)",
    "code in memory that grows": f"{MAP}return mapped(7, 0x122)",
    "memory that is never paged out": f"{MAP}return mapped(3, 0x2022)",
    "memory of large pages": f"{MAP}return mapped(3, 0x40022)",
    "memory merged with that of others": (
        f"{MAP}return call(28, 233, mapped(3, 0x22), 4096, 12) == 0"
    ),
    "pages that are poisoned": f"{MAP}return call(28, 233, mapped(3, 0x22), 4096, 101) == 0",
    "memory that another key protects": f"{MAP}return call(329, 288, mapped(3, 0x22), 4096, 7, -1)",
    "remap pages of a file": f"{MAP}return call(216, 234, mapped(3, 0x21), 4096, 0, 0, 0) == 0",
    "execution implied by reading": "return call(135, 92, 0x0400000) >= 0",
}
"""Memory that is more than the process's own, or that becomes code."""

PROCESSES: Final = {
    "whether a process is there, by its cores": (
        f"{ASKED}return differs(lambda pid: os.sched_getaffinity(pid))"
    ),
    "whether a process is there, by its clock": (
        f"{ASKED}import time\nreturn differs(lambda pid: time.clock_gettime((~pid << 3) | 2))"
    ),
    "how long another process worked": (
        "import time\nreturn time.clock_gettime((~parent << 3) | 2) > 0"
    ),
    "the resolution of another process's clock": (
        f"{ASKED}import time\nreturn differs(lambda pid: time.clock_getres((~pid << 3) | 2))"
    ),
    "sleep by another process's clock": (
        f"{ASKED}def ask(pid):\n"
        "    call(230, 115, (~pid << 3) | 2, 1, struct.pack('QQ', 0, 1), 0)\n"
        "return differs(ask)"
    ),
    "whether a process is there, by its list of locks": (
        f"{ASKED}def ask(pid):\n"
        "    try: call(274, 100, pid, bytes(8), bytes(8))\n"
        "    except OSError as error:\n"
        "        if error.errno == 3: raise\n"
        "return differs(ask)"
    ),
    "whether a process is there, by a lock that it holds": (
        f"{ASKED}def ask(pid):\n"
        "    word = struct.pack('I', pid) + bytes(4)\n"
        "    call(202, 98, word, 6 | 128, 0, struct.pack('QQ', 1, 0), 0, 0)\n"
        "return differs(ask)"
    ),
    "whether a process is there, by its group": f"{ASKED}return differs(os.getpgid)",
    "whether a process is there, by its session": f"{ASKED}return differs(os.getsid)",
    "whether a process is there, by its priority": (
        f"{ASKED}return differs(lambda pid: os.getpriority(0, pid))"
    ),
    "whether a process is there, by its scheduler": f"{ASKED}return differs(os.sched_getscheduler)",
    "whether a process is there, by its capabilities": (
        f"{ASKED}return differs(lambda pid: call(125, 90, struct.pack('Ii', 0x20080522, pid), "
        "ctypes.create_string_buffer(24)))"
    ),
    "go on although it was stopped": "os.kill(os.getpid(), 18); return True",
    "a session of its own": "return os.setsid() > 0",
    "a group of its own": "os.setpgid(0, 0); return True",
    "an interrupt to every core": "return call(324, 283, 1, 0, 0) == 0",
    "a thread with a table of descriptors from a process": "call(272, 97, 0x400); return True",
}
"""Learning of other processes, or disturbing them."""

ABUNDANCE: Final = {
    "thousands of threads": (
        "import _thread\n"
        "_thread.stack_size(32768)\n"
        "gate = _thread.allocate_lock()\n"
        "gate.acquire()\n"
        "count = 0\n"
        "try:\n"
        "    for count in range(4000): _thread.start_new_thread(gate.acquire, ())\n"
        "except (RuntimeError, MemoryError): pass\n"
        "return count > 2000"
    ),
    "a thousand signals that wait": (
        "import signal\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, {40})\n"
        "for count in range(1000): os.kill(os.getpid(), 40)\n"
        "return sum(bool(signal.sigtimedwait({40}, 0)) for count in range(1000)) > 100"
    ),
    "a thousand descriptors": "return len([os.dup(0) for count in range(1000)]) == 1000",
    "larger pipes": "import fcntl\nreturn fcntl.fcntl(sys.stdin.fileno(), 1031, 1 << 20) > 0",
    "locks of files": "import fcntl\nfcntl.lockf(0, fcntl.LOCK_SH); return True",
}
"""Taking more of the machine than was given."""

CORNERS: Final = {"memory": MEMORY, "others": PROCESSES, "abundance": ABUNDANCE}
