"""Hostile code against the sandbox: no escape gets anywhere; without it the same code does."""

import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.attack.escapes import ESCAPES, source_of
from tests.matrix import also

from coloop.errors import UserCodeError
from coloop.sandbox.inside.isolation import Isolation
from coloop.sandbox.process import (
    ALLOW_UNSANDBOXED,
    AvailableIsolation,
    Sandbox,
    available_isolation,
)

TOKEN = "a-secret-that-nobody-outside-knows"
ISOLATIONS = (Isolation.NAMESPACES, Isolation.CALLS)
LIKELY = (
    *("files: read a file", "files: read by os.open", "files: list the folder"),
    *("files: delete the secret", "files: write into the folder", "files: rename the secret"),
    *("files: read with dots from a library's folder", "files: read the users' file"),
    *("oracles: whether a file is there, by stat", "oracles: whether a file is there, by open"),
    *("oracles: whether a file is there, by access", "oracles: what is mounted"),
    *("processes: environment of the one that started it", "processes: names of all processes"),
    *("processes: signal to another process", "starting: code in fresh memory"),
    *(
        "network: connect to a port of this machine",
        "network: listen",
        "starting: a file in memory",
    ),
    *("network: connect by raw call", "network: a pair of sockets", "kernel: be dumpable again"),
    *("memory: code written over a library's", "memory: code in shared memory"),
    "memory: memory that is never paged out",
    *("others: whether a process is there, by its clock", "others: an interrupt to every core"),
    "others: whether a process is there, by its cores",
    "others: whether a process is there, by a lock that it holds",
)
"""What works on every Linux for code without an isolation, and harms nobody when it does."""


class Ground:
    """What the attackers are after."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.secret = folder / "secret"
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(0)
        self.other = subprocess.Popen(["sleep", "600"])
        self.lay()

    def lay(self) -> None:
        self.secret.write_text(TOKEN, encoding="utf-8")
        self.secret.chmod(0o644)

    def columns(self) -> dict[str, list[Any]]:
        known = {
            "secret": str(self.secret),
            "folder": str(self.folder),
            "parent": os.getpid(),
            "other": self.other.pid,
            "port": self.listener.getsockname()[1],
            "token": TOKEN,
        }
        return {"prompts": [""], "completions": [""], **{k: [v] for k, v in known.items()}}

    def harm(self) -> list[str]:
        """What is not as it was."""
        found = []
        if [path.name for path in self.folder.iterdir()] != ["secret"]:
            found.append("the folder holds something else")
        elif self.secret.read_text(encoding="utf-8") != TOKEN:
            found.append("the secret was changed")
        elif self.secret.stat().st_mode & 0o777 != 0o644:
            found.append("its mode was changed")
        if self.other.poll() is not None:
            found.append("another process was ended")
        try:
            self.listener.accept()
            found.append("somebody connected")
        except BlockingIOError:
            pass
        return found

    def close(self) -> None:
        self.listener.close()
        self.other.kill()
        self.other.wait()


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    folder = tmp_path / "held"
    folder.mkdir(mode=0o755)
    made = Ground(folder)
    yield made
    made.close()


def escaped(name: str, isolation: Isolation, columns: dict[str, list[Any]]) -> bool:
    """Whether the code says that it got out."""
    with Sandbox(
        source_of(ESCAPES[name]),
        function="reward",
        node="evil",
        isolation=isolation,
        timeout_seconds=20,
    ) as child:
        try:
            return child.score(columns, 1) != [0.0]
        except UserCodeError:
            return False


def has(isolation: Isolation) -> bool:
    with Sandbox(
        "def keep(**c): return True", function="keep", node="n", isolation=isolation
    ) as probe:
        try:
            return probe.keep([{}]) == [True]
        except UserCodeError:
            return False


def stands_here(isolation: Isolation) -> None:
    if not has(isolation):
        pytest.skip(f"this machine gives no {isolation} isolation: {available_isolation().reason}")


@pytest.mark.attack
@pytest.mark.parametrize(
    ("isolation", "names"),
    [
        *(
            pytest.param(isolation, [*ESCAPES][at::2], id=f"{isolation}-half")
            for at, isolation in enumerate(ISOLATIONS)
        ),
        *(also(w, [*ESCAPES], id=f"{w}-all") for w in ISOLATIONS),
    ],
)
def test_no_escape_succeeds(
    isolation: Isolation,
    names: list[str],
    ground: Ground,
    record_property: Callable[[str, object], None],
) -> None:
    stands_here(isolation)
    columns = ground.columns()

    with ThreadPoolExecutor(2) as pool:
        free = pool.map(lambda name: escaped(name, isolation, columns), names)
        out = [name for name, is_out in zip(names, free, strict=True) if is_out]

    record_property("tried", len(names))
    record_property("through", len(out))
    assert len(ESCAPES) >= 60
    assert out == []
    assert ground.harm() == []


@pytest.mark.slow
@pytest.mark.attack
def test_the_same_code_gets_out_where_there_is_no_isolation(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = []
    for name in LIKELY:
        for path in ground.folder.iterdir():
            path.unlink()
        ground.lay()
        held += [] if escaped(name, Isolation.NONE, ground.columns()) else [name]

    assert held == []


FROM_ELSEWHERE = """
import json, sys
from tests.attack.escapes import ESCAPES
from tests.attack.test_sandbox import Isolation, escaped, has
columns = json.loads(sys.argv[2])
isolation = Isolation(sys.argv[1])
names = [name for name in ESCAPES if escaped(name, isolation, columns)] if has(isolation) else None
print(json.dumps(names))
"""


@pytest.mark.slow
@pytest.mark.attack
@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_no_escape_succeeds_for_a_user_who_is_not_root(
    isolation: Isolation, ground: Ground, record_property: Callable[[str, object], None]
) -> None:
    """Python and the packages are bound to where another user can read them."""
    if os.geteuid() != 0:
        pytest.skip("run by root only: others are tested by the test above")
    root = Path(__file__).resolve().parents[2]
    seen = {
        Path(sys.base_prefix): Path("/mnt/python"),
        root: Path("/mnt/coloop"),
        Path(pytest.__file__).parents[1]: Path("/mnt/packages"),
    }
    binds = " && ".join(
        f"mkdir -p {there} && mount --bind {here} {there}" for here, there in seen.items()
    )
    ground.folder.parent.chmod(0o755)
    for parent in ground.folder.parents:
        if parent.stat().st_uid == 0 and parent != Path("/") and parent.name.startswith("pytest"):
            parent.chmod(0o755)
    shown = subprocess.run(
        [
            *("unshare", "--mount", "sh", "-c"),
            f"mount -t tmpfs tmpfs /mnt && {binds} && cd / && exec setpriv --reuid=65534 "
            '--regid=65534 --clear-groups "$@"',
            "sh",
            *(f"/mnt/python/bin/python{sys.version_info[0]}.{sys.version_info[1]}", "-c"),
            *(FROM_ELSEWHERE, isolation.value, json.dumps(ground.columns())),
        ],
        env={
            "PYTHONPATH": "/mnt/coloop:/mnt/coloop/engine:/mnt/packages",
            "PATH": os.environ["PATH"],
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare" in shown.stderr or "mount:" in shown.stderr or "setpriv" in shown.stderr:
        pytest.skip(f"no other user can be played here: {shown.stderr.strip()[:200]}")
    assert shown.returncode == 0, shown.stderr
    out = json.loads(shown.stdout)
    if out is None:
        pytest.skip(f"another user of this machine gets no {isolation} isolation")
    record_property("tried", len(ESCAPES))
    record_property("through", len(out))

    assert out == []
    assert ground.harm() == []


FORGE = """
import os, json, struct
def send(message):
    data = json.dumps(message).encode()
    for fd in range(3, 64):
        try:
            os.write(fd, struct.pack(">Q", len(data)) + data)
        except OSError:
            pass
def number():
    import sys
    frame = sys._getframe()
    while frame:
        request = frame.f_locals.get("request")
        if isinstance(request, dict) and "id" in request:
            return request["id"]
        frame = frame.f_back
"""
"""What code can do that found the pipe and the number of the request that it is called for."""


@pytest.mark.sample(1)
@pytest.mark.attack
@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("[float('nan')]", "invalid response"),
        ("[float('inf')]", "invalid response"),
        ("['x']", "return a list of 1 values"),
        ("[{'a': 1}]", "return a list of 1 values"),
        ("[True]", "return a list of 1 values"),
        ("[[[1.0]]]", "return a list of 1 values"),
        ("[1.0, 1.0]", "return a list of 1 values"),
        ("'x'", "return a list of 1 values"),
        ("None", "return a list of 1 values"),
    ],
)
def test_a_forged_answer_is_worth_no_more_than_a_returned_one(value: str, told: str) -> None:
    code = FORGE + (
        "def reward(prompts, completions):\n"
        f"    send({{'ok': True, 'value': {value}, 'id': number()}})\n"
        "    while True: pass\n"
    )
    with (
        Sandbox(code, function="reward", node="evil") as child,
        pytest.raises(UserCodeError, match=told),
    ):
        child.score({"prompts": [""], "completions": [""]}, 1)


@pytest.mark.attack
def test_no_answer_can_be_written_ahead() -> None:
    code = FORGE + (
        "def reward(prompts, completions):\n"
        "    send({'ok': True, 'value': [1.0], 'id': number()})\n"
        "    send({'ok': True, 'value': [9.0], 'id': number()})\n"
        "    return [1.0]\n"
    )
    columns = {"prompts": [""], "completions": [""]}
    with Sandbox(code, function="reward", node="evil") as child:
        assert child.score(columns, 1) == [1.0]
        with pytest.raises(UserCodeError, match="out of turn"):
            child.score(columns, 1)


@pytest.mark.attack
@pytest.mark.parametrize(
    "reply",
    [
        "{'ok': False, 'refused': 'x'}",
        "{'ok': False, 'refused': 'x', 'id': number()}",
        "{'ok': True, 'isolation': 'none'}",
    ],
)
def test_code_cannot_talk_its_way_to_a_weaker_isolation(
    reply: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs with the first isolation alone, whatever it says while it is loaded."""
    begun: list[Isolation] = []
    begin = Sandbox._begin
    monkeypatch.setattr(
        Sandbox, "_begin", lambda self, isolation: (begun.append(isolation), begin(self, isolation))
    )
    available_isolation()
    begun.clear()
    code = FORGE + f"send({reply})\nwhile True: pass\n"

    with Sandbox(code, function="reward", node="evil") as child, pytest.raises(UserCodeError):
        child.load()

    assert begun == [available_isolation().isolation]


@pytest.mark.attack
def test_without_an_isolation_code_needs_a_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "coloop.sandbox.process.available_isolation",
        lambda: AvailableIsolation(Isolation.NONE, "an old kernel"),
    )
    columns = {"prompts": [""], "completions": [""]}
    code = "def reward(prompts, completions): return [1.0]"

    monkeypatch.delenv(ALLOW_UNSANDBOXED, raising=False)
    with (
        Sandbox(code, function="reward", node="mine") as child,
        pytest.raises(
            UserCodeError, match=r"an old kernel(.|\n)*COLOOP_ALLOW_UNSANDBOXED_CODE=yes"
        ),
    ):
        child.score(columns, 1)
    monkeypatch.setenv(ALLOW_UNSANDBOXED, "yes")
    with Sandbox(code, function="reward", node="mine") as child:
        assert child.score(columns, 1) == [1.0]


@pytest.mark.sample(1)
@pytest.mark.attack
@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_code_does_not_outlive_the_one_that_started_it(isolation: Isolation) -> None:
    """Killed without a chance to clear up, it leaves nothing that runs."""
    stands_here(isolation)
    starter = (
        "import sys, time\n"
        "from coloop.sandbox.inside.isolation import Isolation\n"
        "from coloop.sandbox.process import Sandbox\n"
        f"box = Sandbox('def reward(prompts, completions):\\n while True: pass', function='reward',"
        f" node='n', isolation=Isolation({isolation.value!r}), timeout_seconds=600)\n"
        "box.load()\n"
        "print(box.process_id, flush=True)\n"
        "box.score({'prompts': [''], 'completions': ['']}, 1)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", starter], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        watcher = int(process.stdout.readline())
        handle = os.pidfd_open(watcher)
        process.kill()
        ready, _, _ = select.select([handle], [], [], 60)
        os.close(handle)

    assert ready


@pytest.mark.sample(1)
@pytest.mark.attack
@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_code_stands_still_between_calls(isolation: Isolation) -> None:
    """A thread that it left behind takes no core while nothing is asked."""
    stands_here(isolation)
    code = (
        "import threading, time\n"
        "spent = [0]\n"
        "def burn():\n"
        "    while True:\n"
        "        spent[0] += 1\n"
        "threading.Thread(target=burn, daemon=True).start()\n"
        "def reward(prompts, completions):\n"
        "    return [time.process_time()]\n"
    )
    columns = {"prompts": [""], "completions": [""]}
    with Sandbox(code, function="reward", node="evil", isolation=isolation) as child:
        (before,) = child.score(columns, 1)
        time.sleep(1.0)
        (after,) = child.score(columns, 1)

    assert isinstance(before, float)
    assert isinstance(after, float)
    assert after - before < 0.5
