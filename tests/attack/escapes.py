"""Ways out of the sandbox, each as a reward that returns 1 where it succeeded.

All begin like hostile code would: the audit hook is taken down and ctypes brought back, so that
nothing but the sandbox holds it. `columns` tells them what an attacker may know or guess: paths of
files, the process ids of those outside, a port that listens, a name that another user has.
"""

from typing import Final

from tests.attack.corners import CORNERS

PRELUDE: Final = '''
import sys, os, struct, errno

class Any_:
    def __contains__(self, one):
        return True

def _free():
    frame = sys._getframe()
    while frame is not None:
        space = frame.f_globals
        if "REFUSED" in space:
            space["REFUSED"] = ()
            space["HARMLESS"] = Any_()
        frame = frame.f_back
    import gc
    for one in gc.get_objects():
        if getattr(one, "__name__", "") == "hook" and getattr(one, "__closure__", None):
            names = ", ".join(one.__code__.co_freevars)
            space = {}
            exec(
                f"def maker({names}):\\n def hook(event, args):\\n  ({names},)\\n return hook\\n",
                space,
            )
            one.__code__ = space["maker"](*one.__closure__).__code__
    for name in ("ctypes", "_ctypes"):
        if sys.modules.get(name, name) is None:
            del sys.modules[name]

_free()
try:
    import ctypes
    _libc = ctypes.CDLL(None, use_errno=True)
    _libc.syscall.restype = ctypes.c_long
except Exception:
    ctypes = None
ARM = os.uname().machine == "aarch64"

def call(x86, arm, *arguments):
    """A call of the kernel by number; raises OSError where it is refused."""
    number = arm if ARM else x86
    if number is None or ctypes is None:
        raise OSError(errno.ENOSYS, "no such call")
    given = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    ctypes.set_errno(0)
    result = _libc.syscall(ctypes.c_long(number), *given)
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return result

def there(path):
    """Whether the answers to a path that is there and to one that is not differ."""
    def asked(one):
        try:
            os.stat(one)
            return "found"
        except OSError as error:
            return error.errno
    return asked(path) != asked(path + "-not-there")

def reward(prompts, completions, secret, folder, parent, other, port, token, **rest):
    try:
        return [float(bool(attack(secret[0], folder[0], parent[0], other[0], port[0], token[0])))]
    except BaseException:
        return [0.0]

def attack(secret, folder, parent, other, port, token):
'''

FILES: Final = {
    "read a file": "return token in open(secret).read()",
    "read by os.open": "return token.encode() in os.read(os.open(secret, os.O_RDONLY), 999)",
    "read by openat2": (
        "how = struct.pack('QQQ', 0, 0, 0)\n"
        "fd = call(437, 437, -100, secret.encode(), how, 24)\n"
        "return token.encode() in os.read(fd, 999)"
    ),
    "read below a folder's descriptor": (
        "fd = os.open(folder, os.O_RDONLY)\n"
        "return token.encode() in os.read(os.open('secret', os.O_RDONLY, dir_fd=fd), 999)"
    ),
    "read with dots from a library's folder": (
        "up = os.path.dirname(os.__file__) + '/..' * 40\nreturn token in open(up + secret).read()"
    ),
    "read the users' file": "return 'root' in open('/etc/passwd').read()",
    "list the root": "return bool({'proc', 'var', 'boot', 'sys'} & set(os.listdir('/')))",
    "list the folder": "return 'secret' in os.listdir(folder)",
    "walk everywhere for the secret": (
        "for at, folders, files in os.walk('/'):\n"
        "    if at.count('/') > 5: folders.clear()\n"
        "    if 'secret' in files and at == folder: return True"
    ),
    "write into the folder": "open(folder + '/written', 'w').write('x'); return True",
    "write into a temporary folder": "open('/tmp/written-by-code', 'w').write('x'); return True",
    "make a folder": "os.mkdir(folder + '/made'); return True",
    "make a temporary folder": "os.mkdir('/tmp/made-by-code'); return True",
    "delete the secret": "os.remove(secret); return True",
    "empty the secret": "os.truncate(secret, 0); return True",
    "empty it by open": "os.open(secret, os.O_WRONLY | os.O_TRUNC); return True",
    "rename the secret": "os.rename(secret, secret + '-2'); return True",
    "link to the secret": "os.link(secret, folder + '/hard'); return True",
    "make a symbolic link": "os.symlink(secret, folder + '/soft'); return True",
    "symbolic link in a temporary folder": (
        "os.symlink(secret, '/tmp/soft-by-code')\nreturn token in open('/tmp/soft-by-code').read()"
    ),
    "change the mode": "os.chmod(secret, 0o777); return True",
    "change the owner": "os.chown(secret, 65534, 65534); return True",
    "change the times": "os.utime(secret, (0, 0)); return True",
    "change an extended attribute": "os.setxattr(secret, 'user.x', b'x'); return True",
    "write over a library": "open(os.__file__, 'r+').write('x'); return True",
    "write beside a library": (
        "open(os.path.dirname(os.__file__) + '/evil.py', 'w').write('x'); return True"
    ),
    "make a device of the disk": "os.mknod('/tmp/disk', 0o60600, os.makedev(8, 0)); return True",
    "make a pipe with a name": "os.mkfifo(folder + '/pipe'); return True",
    "open by handle": (
        "handle = struct.pack('Ii', 128, 0) + bytes(128)\n"
        "mount = ctypes.c_int()\n"
        "call(303, 264, -100, secret.encode(), handle, ctypes.byref(mount), 0); return True"
    ),
    "read the disk's name in /sys": "return bool(os.listdir('/sys/block'))",
    "read a terminal": "return bool(os.open('/dev/tty', os.O_RDWR))",
    "read the shared memory": "return bool(os.listdir('/dev/shm')) or True",
    "send a file to the pipe": (
        "call(40, 71, 1, os.open(secret, os.O_RDONLY), 0, 99); return True"
    ),
    "watch a file": (
        "fd = call(253, None, ) if not ARM else call(None, 26, 0)\n"
        "call(254, 27, fd, secret.encode(), 0xfff); return True"
    ),
}
"""Reading and changing files that are not the libraries'."""

ORACLES: Final = {
    "whether a file is there, by stat": "return there(secret)",
    "whether a file is there, by open": (
        "def asked(one):\n"
        "    try: os.open(one, os.O_RDONLY); return 0\n"
        "    except OSError as error: return error.errno\n"
        "return asked(secret) != asked(secret + '-not')"
    ),
    "whether a file is there, by O_PATH": (
        "def asked(one):\n"
        "    try: os.open(one, os.O_PATH); return 0\n"
        "    except OSError as error: return error.errno\n"
        "return asked(secret) != asked(secret + '-not')"
    ),
    "whether a file is there, by access": "return os.access(secret, os.F_OK)",
    "whether a file is there, by readlink": (
        "def asked(one):\n"
        "    try: os.readlink(one); return 0\n"
        "    except OSError as error: return error.errno\n"
        "return asked(secret) != asked(secret + '-not')"
    ),
    "whether a file is there, by chdir": (
        "def asked(one):\n"
        "    try: os.chdir(one); return 0\n"
        "    except OSError as error: return error.errno\n"
        "return asked(folder) != asked(folder + '-not')"
    ),
    "whether a file is there, by statfs": "os.statvfs(folder); return True",
    "whether a file is there, by name_to_handle": (
        "def asked(one):\n"
        "    handle = struct.pack('Ii', 0, 0) + bytes(128); mount = ctypes.c_int()\n"
        "    try: call(303, 264, -100, one.encode(), handle, ctypes.byref(mount), 0); return 0\n"
        "    except OSError as error: return error.errno\n"
        "return asked(secret) != asked(secret + '-not')"
    ),
    "whether a file is there, by executing it": (
        "def asked(one):\n"
        "    try: os.execv(one, [one]); return 0\n"
        "    except OSError as error: return error.errno\n"
        "return asked(secret) != asked(secret + '-not')"
    ),
    "what is mounted": "return 'ext4' in open('/proc/self/mountinfo').read() or True",
}
"""Learning of a file without reading it."""

PROCESSES: Final = {
    "environment of the one that started it": (
        "return b'PATH' in open(f'/proc/{parent}/environ', 'rb').read()"
    ),
    "command line of the one that started it": (
        "return bool(open(f'/proc/{parent}/cmdline', 'rb').read())"
    ),
    "descriptors of the one that started it": "return bool(os.listdir(f'/proc/{parent}/fd'))",
    "root folder of the one that started it": (
        "return token in open(f'/proc/{parent}/root{secret}').read()"
    ),
    "working folder of the one that started it": "return bool(os.listdir(f'/proc/{parent}/cwd'))",
    "memory of the one that started it": "return bool(open(f'/proc/{parent}/mem', 'r+b'))",
    "memory by process_vm_readv": (
        "buffer = ctypes.create_string_buffer(8)\n"
        "local = struct.pack('PN', ctypes.addressof(buffer), 8)\n"
        "remote = struct.pack('PN', id(os), 8)\n"
        "call(310, 270, parent, local, 1, remote, 1, 0); return True"
    ),
    "memory by process_vm_writev": (
        "buffer = ctypes.create_string_buffer(8)\n"
        "local = struct.pack('PN', ctypes.addressof(buffer), 8)\n"
        "remote = struct.pack('PN', id(os), 8)\n"
        "call(311, 271, parent, local, 1, remote, 1, 0); return True"
    ),
    "attach by ptrace": "call(101, 117, 16, parent, 0, 0); return True",
    "attach by ptrace to its watcher": "call(101, 117, 16, os.getppid(), 0, 0); return True",
    "be traced": "call(101, 117, 0, 0, 0, 0); return True",
    "signal to the one that started it": "os.kill(parent, 0); return True",
    "signal to another process": "os.kill(other, 0); return True",
    "signal to all": "os.kill(-1, 10); return True",
    "signal to its group": "os.killpg(0, 10); return True",
    "signal by tgkill": "call(234, 131, parent, parent, 0); return True",
    "signal by tkill": "call(200, 130, parent, 0); return True",
    "signal by rt_sigqueueinfo": "call(129, 138, parent, 0, bytes(128)); return True",
    "descriptor of a process": "call(434, 434, parent, 0); return True",
    "descriptor out of a process": "call(438, 438, call(434, 434, parent, 0), 0, 0); return True",
    "owner of a pipe's signals": (
        "import fcntl\nfcntl.fcntl(0, fcntl.F_SETOWN, parent)\nreturn True"
    ),
    "limits of the one that started it": (
        "import resource\nresource.prlimit(parent, resource.RLIMIT_NOFILE); return True"
    ),
    "priority of the one that started it": "os.setpriority(0, parent, 19); return True",
    "cores of the one that started it": "os.sched_setaffinity(parent, {0}); return True",
    "compare descriptors": "call(312, 272, parent, os.getpid(), 0, 0, 0); return True",
    "names of all processes": "return any(n.isdecimal() for n in os.listdir('/proc'))",
}
"""Reaching other processes."""

STARTING: Final = {
    "fork": "pid = os.fork()\nif pid == 0: os._exit(0)\nreturn True",
    "vfork": "call(58, None); return True",
    "clone": "pid = call(56, 220, 17, 0, 0, 0, 0)\nif pid == 0: os._exit(0)\nreturn True",
    "clone3": (
        "pid = call(435, 435, struct.pack('8Q', 0, 0, 0, 0, 17, 0, 0, 0), 64)\n"
        "if pid == 0: os._exit(0)\nreturn True"
    ),
    "thread in a namespace of its own": "call(56, 220, 0x10010f00, 0, 0, 0, 0); return True",
    "run a program": "os.execv('/bin/true', ['true'])",
    "run a program by execveat": (
        "call(322, 281, -100, b'/bin/true', struct.pack('P', 0), struct.pack('P', 0), 0)"
    ),
    "run by subprocess": (
        "import subprocess\nreturn subprocess.run([sys.executable, '-c', '1']).returncode == 0"
    ),
    "run by posix_spawn": "os.posix_spawn('/bin/true', ['true'], {}); return True",
    "run by system": "return os.system('true') == 0",
    "run from memory": (
        "fd = call(319, 279, b'x', 0)\n"
        "os.write(fd, b'#!/bin/sh\\n')\n"
        "os.execv(f'/proc/self/fd/{fd}', ['x'])"
    ),
    "a file in memory": "call(319, 279, b'x', 0); return True",
    "secret memory": "call(447, 447, 0); return True",
    "run the loader": ("os.execv('/lib64/ld-linux-x86-64.so.2', ['ld.so', '/bin/true'])"),
    "code in fresh memory": (
        "at = _libc.mmap; at.restype = ctypes.c_long\n"
        "return at(None, 4096, 7, 0x22, -1, 0) not in (-1, None)"
    ),
    "code in memory that was data": (
        "buffer = ctypes.create_string_buffer(8192)\n"
        "start = (ctypes.addressof(buffer) + 4095) & ~4095\n"
        "_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)\n"
        "return _libc.mprotect(start, 4096, 7) == 0"
    ),
}
"""Starting something that outlives the call, or code that is none of the libraries'."""

NETWORK: Final = {
    "connect to a port of this machine": (
        "import socket\nsocket.create_connection(('127.0.0.1', port), 1); return True"
    ),
    "connect by raw call": (
        "fd = call(41, 198, 2, 1, 0)\n"
        "at = struct.pack('<H', 2) + struct.pack('>H', port) + bytes([127, 0, 0, 1]) + bytes(8)\n"
        "call(42, 203, fd, at, 16); return True"
    ),
    "listen": (
        "import socket\ns = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); return True"
    ),
    "send without a connection": (
        "import socket\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "s.sendto(b'x', ('127.0.0.1', port)); return True"
    ),
    "look up a name": "import socket\nsocket.getaddrinfo('localhost', port); return True",
    "a socket of the file system": (
        "import socket\nsocket.socket(socket.AF_UNIX).connect('/var/run/docker.sock'); return True"
    ),
    "an abstract socket": (
        "import socket\nsocket.socket(socket.AF_UNIX).bind('\\0coloop-attack'); return True"
    ),
    "a pair of sockets": "import socket\nsocket.socketpair(); return True",
    "talk to the kernel by netlink": "call(41, 198, 16, 3, 0); return True",
    "raw packets": "call(41, 198, 17, 3, 0x300); return True",
    "a virtual machine's socket": "call(41, 198, 40, 1, 0); return True",
}
"""Reaching the network or another program by a socket."""

KERNEL: Final = {
    "io_uring": "call(425, 425, 4, ctypes.create_string_buffer(256)); return True",
    "bpf": "call(321, 280, 0, bytes(128), 128); return True",
    "keys of the kernel": "call(250, 219, 0, -3, 0, 0, 0); return True",
    "add a key": "call(248, 217, b'user', b'x', b'x', 1, -4); return True",
    "performance counters": "call(298, 241, bytes(128), 0, -1, -1, 0); return True",
    "page faults of its own": "call(323, 282, 1); return True",
    "a namespace of its own": "call(272, 97, 0x10000000); return True",
    "another process's namespace": "call(308, 268, 0, 0); return True",
    "mount": "call(165, 40, b'x', b'/tmp', b'tmpfs', 0, b''); return True",
    "unmount": "call(166, 39, b'/', 2); return True",
    "open a tree": "call(428, 428, -100, b'/', 1); return True",
    "a new mount": "call(430, 430, b'tmpfs', 0); return True",
    "another root": "os.chroot('/usr'); return True",
    "pivot": "call(155, 41, b'/', b'/'); return True",
    "become root": "os.setuid(0); return os.getuid() == 0",
    "become root by setresuid": "os.setresuid(0, 0, 0); return os.getuid() == 0",
    "capabilities": (
        "data = struct.pack('6I', *(0xffffffff,) * 6)\n"
        "call(126, 91, struct.pack('Ii', 0x20080522, 0), data); return True"
    ),
    "be dumpable again": "call(157, 167, 4, 1, 0, 0, 0); return True",
    "take the filter off": "call(157, 167, 22, 0, 0, 0, 0); return True",
    "another filter": "call(317, 277, 1, 0, struct.pack('HxxxxxxP', 0, 0)); return True",
    "raise the limit of memory": (
        "import resource\nresource.setrlimit(resource.RLIMIT_AS, (-1, -1)); return True"
    ),
    "raise the limit of files' sizes": (
        "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1)); return True"
    ),
    "calls of 32 bits": "return call(0x40000000 + 39, None) > 0",
    "set the clock": "import time\ntime.clock_settime(0, 0); return True",
    "set the host's name": "call(170, 161, b'evil', 4); return True",
    "load a module": "call(175, 105, bytes(8), 8, b''); return True",
    "restart": "call(169, 142, 0xfee1dead, 0x28121969, 0, 0); return True",
    "swap": "call(167, 224, b'/x', 0); return True",
    "the kernel's log": (
        "return call(103, 116, 10, ctypes.create_string_buffer(9), 9) is not None"
    ),
    "shared memory of System V": "call(29, 194, 0, 4096, 0o1666); return True",
    "messages of System V": "call(68, 186, 0, 0o1666); return True",
    "a queue of messages": "call(240, 180, b'coloop', 0o102, 0o666, 0); return True",
    "lock memory": "call(149, 228, 0, 4096); return True",
    "a timer that signals": "call(222, 107, 1, 0, ctypes.create_string_buffer(8)); return True",
}
"""Reaching into the kernel."""

ENVIRONMENT: Final = {
    "a token in the environment": "return token in str(dict(os.environ))",
    "a token in the arguments": "return token in ' '.join(sys.orig_argv)",
    "a descriptor that was left open": (
        "for number in range(3, 64):\n"
        "    try:\n"
        "        if os.pread(number, 999, 0).find(token.encode()) >= 0: return True\n"
        "    except OSError: pass"
    ),
    "standard input": "return bool(os.read(0, 9))",
    "who the user is": "import pwd\nreturn bool(pwd.getpwuid(0))",
}
"""What it was given or left with."""

ESCAPES: Final[dict[str, str]] = {
    f"{kind}: {name}": body
    for kind, group in {
        "files": FILES,
        "oracles": ORACLES,
        "processes": PROCESSES,
        "starting": STARTING,
        "network": NETWORK,
        "kernel": KERNEL,
        "environment": ENVIRONMENT,
        **CORNERS,
    }.items()
    for name, body in group.items()
}


def source_of(body: str) -> str:
    """The whole code of an escape."""
    return PRELUDE + "".join(f"    {line}\n" for line in body.split("\n"))
