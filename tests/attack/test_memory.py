"""What a server and a driver hold, seen by another process of the same user."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from coloop.sandbox.inside import kernel

NOBODY = 65534

HOLDER = """
import os, sys, time
from coloop.sandbox.inside import kernel
from coloop.sandbox.inside.kernel import keep_private
if os.geteuid() == 0:
    os.setgroups([]); os.setresgid({nobody}, {nobody}, {nobody})
    os.setresuid({nobody}, {nobody}, {nobody})
kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
if sys.argv[1] == "kept":
    keep_private()
print("ready", flush=True)
sys.stdin.read()
"""
READER = """
import json, os, sys
pid, user = int(sys.argv[1]), int(sys.argv[2])
if os.geteuid() == 0:
    os.setgroups([]); os.setresgid(user, user, user); os.setresuid(user, user, user)
found = {}
for name in ("environ", "mem", "maps"):
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            found[name] = name == "mem" or bool(file.read())
    except OSError:
        found[name] = False
try:
    found["descriptors"] = bool(os.listdir(f"/proc/{pid}/fd"))
except OSError:
    found["descriptors"] = False
print(json.dumps(found))
"""


def seen(kind: str) -> dict[str, bool]:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER.format(nobody=NOBODY), kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLOOP_TOKEN": "secret", "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "ready\n"
        reader = subprocess.run(
            [sys.executable, "-c", READER, str(holder.pid), str(NOBODY)],
            capture_output=True,
            text=True,
            check=True,
        )
        assert holder.stdin is not None
        holder.stdin.close()
    found: dict[str, bool] = json.loads(reader.stdout)
    return found


@pytest.mark.attack
def test_another_process_of_the_user_reads_nothing() -> None:
    if not kernel.IS_KNOWN:
        pytest.skip("only Linux keeps a process from others of its user")

    assert seen("open") == dict.fromkeys(("environ", "mem", "maps", "descriptors"), True)
    assert seen("kept") == dict.fromkeys(("environ", "mem", "maps", "descriptors"), False)


@pytest.mark.slow
@pytest.mark.attack
@pytest.mark.parametrize(
    "command",
    [
        "from coloop.cli.app import main; sys.argv[1:] = ['run', 'no-such-loop.yaml']; main()",
        "from coloop_server.cli import serve; serve(host='256.0.0.1', open_browser=False)",
    ],
)
def test_driver_and_server_begin_by_it(command: str, tmp_path: Path) -> None:
    """Before anything else can go wrong."""
    code = (
        "import sys, ctypes\n"
        f"try:\n    {command}\n"
        "except BaseException: pass\n"
        "print('dumpable', ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))\n"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True
    )

    assert shown.stdout.split("\n")[-2] == "dumpable 0", shown.stderr
