"""What a machine may lack or refuse while the sandbox is built: the code never runs with less than
the isolation that was chosen."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.attack.test_sandbox import ISOLATIONS, stands_here

from coloop.errors import UserCodeError
from coloop.sandbox import process
from coloop.sandbox.inside.isolation import Isolation
from coloop.sandbox.process import ALLOW_UNSANDBOXED, AvailableIsolation, Sandbox

pytestmark = pytest.mark.attack

ONE: dict[str, list[Any]] = {"prompts": [""], "completions": [""]}
HONEST = "def reward(prompts, completions): return [1.0]"
REFUSES = "def refuse(*given, **named): raise OSError(1, 'refused in play')\n"
ALWAYS = {
    "a namespace": "kernel.unshare = refuse",
    "the host's name": "kernel.set_host_name = refuse",
    "a mount": "kernel.mount = refuse",
    "a read-only mount": "kernel.make_read_only = refuse",
    "another root": "kernel.pivot_root = refuse",
    "leaving the old root": "kernel.unmount = refuse",
    "dropping capabilities": "kernel.drop_capabilities = refuse",
    "a process control": "kernel.prctl = refuse",
    "Landlock that is there": "kernel.landlock_version = lambda: 4; kernel.landlock = refuse",
    "the list of calls": "kernel.seccomp = refuse",
    "a list of calls that is taken and not kept": "kernel.seccomp = lambda program: None",
    "a thread left out of the list": "kernel._libc = Left()",
    "another user": "os.setresuid = refuse",
    "another group": "os.setresgid = refuse",
    "other groups": "os.setgroups = refuse",
    "another architecture": "kernel.IS_KNOWN = False",
    "a number of the architecture": "kernel.MACHINE = 'riscv64'",
}
HARMLESS = {
    (Isolation.CALLS, "a namespace"),
    (Isolation.CALLS, "the host's name"),
    (Isolation.CALLS, "a mount"),
    (Isolation.CALLS, "a read-only mount"),
    (Isolation.CALLS, "another root"),
    (Isolation.CALLS, "leaving the old root"),
}
"""What this isolation does without."""
START = """
import os, runpy, sys
sys.path.insert(0, {engine!r})
from coloop.sandbox.inside import isolation, kernel
libc = kernel._libc
class Left:
    def __getattr__(self, name):
        return getattr(libc, name)
    def syscall(self, number, *given):
        is_filter = number.value == kernel._SECCOMP[kernel.MACHINE]
        return 7 if is_filter else libc.syscall(number, *given)
{refuses}
{play}
sys.path.pop(0)
runpy.run_path({child!r}, run_name="__main__")
"""


def score(isolation: Isolation | None) -> object:
    with Sandbox(HONEST, function="reward", node="mine", isolation=isolation) as child:
        return child.score(ONE, 1)


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A child that meets another machine than this one."""

    def play(lines: str) -> None:
        script = tmp_path / "child.py"
        names = {"engine": str(process.CHILD.parents[3]), "child": str(process.CHILD)}
        script.write_text(START.format(refuses=REFUSES, play=lines, **names), encoding="utf-8")
        monkeypatch.setattr(process, "CHILD", script)

    return play


@pytest.mark.sample(3)
@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize(
    "lacking",
    [
        pytest.param(name, marks=[] if "list" in name or "capab" in name else pytest.mark.slow)
        for name in ALWAYS
    ],
)
def test_an_isolation_that_is_not_whole_is_none(
    isolation: Isolation, lacking: str, played: Any
) -> None:
    stands_here(isolation)
    if os.geteuid() != 0 and lacking.startswith(("another user", "another group", "other groups")):
        pytest.skip("only root gives up root")
    played(ALWAYS[lacking])

    if (isolation, lacking) in HARMLESS:
        assert score(isolation) == [1.0]
        return
    with pytest.raises(UserCodeError):
        score(isolation)


def test_root_that_could_not_end_the_code_does_not_start_it(played: Any) -> None:
    """A container may take the right to signal other users' processes from its root."""
    if os.geteuid() != 0:
        pytest.skip("an ordinary user's code runs as that user")
    played(
        "import struct, ctypes\n"
        "sets = ctypes.create_string_buffer(24)\n"
        "head = struct.pack('Ii', 0x20080522, 0)\n"
        "libc.syscall(ctypes.c_long(kernel._CAPGET[kernel.MACHINE]), head, sets)\n"
        "words = list(struct.unpack('6I', sets))\n"
        "words[0] &= ~(1 << 5); words[1] &= ~(1 << 5)\n"
        "libc.syscall(ctypes.c_long(kernel._CAPSET[kernel.MACHINE]), head, "
        "struct.pack('6I', *words))"
    )

    for isolation in ISOLATIONS:
        with pytest.raises(UserCodeError, match="CAP_KILL"):
            score(isolation)


def test_a_start_that_fails_once_takes_no_weaker_isolation(
    played: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even where the owner said that code may run without: that was said of other machines."""
    monkeypatch.setenv(ALLOW_UNSANDBOXED, "yes")
    monkeypatch.setattr(
        process, "available_isolation", lambda: AvailableIsolation(Isolation.NAMESPACES)
    )
    played("kernel.unshare = refuse; kernel.seccomp = refuse")

    with pytest.raises(UserCodeError, match="namespaces"):
        score(None)


def test_a_machine_too_busy_to_tell_is_not_taken_for_a_weak_one(
    played: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "START_TIMEOUT_SECONDS", 0.2)
    played("import time; time.sleep(60)")
    process.available_isolation.cache_clear()

    with pytest.raises(UserCodeError, match="did not answer"):
        process.available_isolation()

    assert process.available_isolation.cache_info().currsize == 0


def libraries(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Packages are imported from here."""
    monkeypatch.setattr(
        process.sysconfig, "get_paths", lambda: {"purelib": str(folder), "platlib": str(folder)}
    )


THREADED = """
import queue, threading
asked, answers = queue.Queue(), queue.Queue()
def work():
    while True:
        function = asked.get()
        try: answers.put(function())
        except BaseException as error: answers.put(error)
threading.Thread(target=work, daemon=True).start()
"""
ASKING = """
import threaded, os
def reward(prompts, completions):
    def look():
        return os.stat("/")
    import sys
    threaded.asked.put(look)
    return [0.0 if isinstance(threaded.answers.get(timeout=9), PermissionError) else 1.0]
"""


def test_a_thread_of_an_imported_module_is_behind_the_list_of_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It began before the door was shut."""
    stands_here(Isolation.CALLS)
    (tmp_path / "threaded.py").write_text(THREADED, encoding="utf-8")
    tmp_path.chmod(0o755)
    libraries(tmp_path, monkeypatch)

    with Sandbox(ASKING, function="reward", node="evil", isolation=Isolation.CALLS) as child:
        assert child.score(ONE, 1) == [0.0]


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("name", ["packages", "with\na line, späte"])
def test_packages_behind_a_link_and_below_odd_names_are_there(
    isolation: Isolation, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stands_here(isolation)
    real = tmp_path / name
    real.mkdir()
    (real / "there.py").write_text("value = 0.5", encoding="utf-8")
    (real / "out.py").symlink_to("/etc/hostname")
    (tmp_path / "link").symlink_to(real)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.name.startswith("pytest") and folder.stat().st_uid == os.geteuid():
            folder.chmod(0o755)
    libraries(tmp_path / "link", monkeypatch)
    code = (
        "import os, there\n"
        "def reward(prompts, completions):\n"
        "    try: open(os.path.dirname(there.__file__) + '/out.py'); return [9.0]\n"
        "    except OSError: return [there.value]\n"
    )

    with Sandbox(code, function="reward", node="mine", isolation=isolation) as child:
        assert child.score(ONE, 1) == [0.5]


def test_neither_environment_nor_folder_of_the_caller_reach_the_child(tmp_path: Path) -> None:
    """Modules that lie where the server was started, and what its environment says of Python."""
    mark = tmp_path / "mark"
    evil = f"open({str(mark)!r}, 'a').write(__name__)\n"
    for name in ("json", "encodings", "ctypes", "sitecustomize", "usercustomize", "coloop", "os"):
        (tmp_path / f"{name}.py").write_text(evil, encoding="utf-8")
    runs = (
        "import sys; sys.path[:] = [p for p in sys.path if p and p != sys.argv[1]] + "
        "sys.argv[2].split(':')\n"
        "from coloop.sandbox.process import Sandbox\n"
        f"box = Sandbox({HONEST!r}, function='reward', node='n')\n"
        "import os\n"
        "os.environ.update(PYTHONPATH=sys.argv[1], PYTHONSTARTUP=sys.argv[1] + '/os.py',\n"
        "    PYTHONHOME='/nowhere', LD_PRELOAD='/nowhere.so', PYTHONINSPECT='1')\n"
        f"print(box.score({ONE!r}, 1)); box.close()\n"
    )
    shown = subprocess.run(
        [
            sys.executable,
            "-P",
            "-c",
            runs,
            str(tmp_path),
            os.pathsep.join(p for p in sys.path if p),
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )

    assert shown.stdout == "[1.0]\n", shown.stderr
    assert not mark.exists()
