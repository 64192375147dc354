"""Two machines of a cluster as network namespaces of this one, and what Slurm would do on them.

Each namespace has an address, names of both in its `/etc/hosts`, and a folder of its own in place
of `/tmp/ray`. `srun` and `scontrol` are small scripts: they enter a namespace and list names.
"""

import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SRUN = r"""#!/bin/bash
node=""
while [[ "$1" == --* ]]; do
  [[ "$1" == --nodelist=* ]] && node="${1#--nodelist=}"
  shift
done
exec "$COLOOP_TEST_BIN/on" "$node" "$@"
"""
ON = r"""#!/bin/bash
node="$1"; shift
exec ip netns exec "$node" bash -c '
  mount --bind "$COLOOP_TEST_BIN/../ray-$0" /tmp/ray && exec "$@"' "$node" "$@"
"""
SCONTROL = r"""#!/bin/bash
case "$1 $2" in
  "show hostnames") tr , "\n" <<< "$3" ;;
  requeue\ *) echo "$2" >> "$COLOOP_TEST_BIN/../requeued" ;;
esac
"""


@dataclass(frozen=True)
class Machines:
    names: tuple[str, str]
    folder: Path

    def start(self, script: Path, job: int) -> "subprocess.Popen[bytes]":
        """The batch script as Slurm starts it: on the first machine."""
        environment = {
            **os.environ,
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "COLOOP_TEST_BIN": str(self.folder / "bin"),
            "SLURM_JOB_ID": str(job),
            "SLURM_JOB_NODELIST": ",".join(self.names),
            "OMP_NUM_THREADS": "1",
        }
        command = [str(self.folder / "bin" / "on"), self.names[0], "bash", str(script)]
        with (self.folder / "job.log").open("ab") as log:
            return subprocess.Popen(
                command, stdout=log, stderr=log, env=environment, start_new_session=True
            )

    def lose(self, name: str) -> None:
        """End everything that runs on a machine."""
        found = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True)
        for pid in found.stdout.split():
            try:
                os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                continue

    @property
    def log(self) -> str:
        return (self.folder / "job.log").read_text(encoding="utf-8", errors="replace")


def why_not() -> str | None:
    """Why there are no namespaces here; None: they can be made."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "ip (iproute2) is not installed"
    name = f"coloop-{secrets.token_hex(3)}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    if made.returncode:
        return f"network namespaces cannot be made here: {made.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", name], check=False)
    return None


@contextmanager
def two_machines(folder: Path) -> Iterator[Machines]:
    mark = secrets.token_hex(2)
    first, second = names = (f"cl{mark}a", f"cl{mark}b")
    addresses = {first: "10.231.77.1", second: "10.231.77.2"}
    machines = Machines(names, folder)
    bin_folder = folder / "bin"
    bin_folder.mkdir(parents=True)
    python = sys.executable
    scripts = {
        "srun": SRUN,
        "on": ON,
        "scontrol": SCONTROL,
        "python": f'#!/bin/bash\nexec {python} "$@"\n',
        "coloop": f'#!/bin/bash\nexec {python} -m coloop "$@"\n',
        "ray": f'#!/bin/bash\nexec {Path(python).with_name("ray")} "$@"\n',
    }
    for name, text in scripts.items():
        (bin_folder / name).write_text(text, encoding="utf-8")
        (bin_folder / name).chmod(0o755)
    Path("/tmp/ray").mkdir(exist_ok=True)
    hosts = "127.0.0.1 localhost\n" + "".join(f"{ip} {name}\n" for name, ip in addresses.items())
    try:
        for name in names:
            (folder / f"ray-{name}").mkdir()
            _ip("netns", "add", name)
            place = Path("/etc/netns") / name
            place.mkdir(parents=True)
            (place / "hosts").write_text(hosts, encoding="utf-8")
            _ip("-n", name, "link", "set", "lo", "up")
        _ip(
            "link",
            "add",
            first,
            "netns",
            first,
            "type",
            "veth",
            "peer",
            "name",
            second,
            "netns",
            second,
        )
        for name, address in addresses.items():
            _ip("-n", name, "address", "add", f"{address}/30", "dev", name)
            _ip("-n", name, "link", "set", name, "up")
            _ip("-n", name, "route", "add", "default", "dev", name)
        yield machines
    finally:
        for name in names:
            machines.lose(name)
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)
            shutil.rmtree(Path("/etc/netns") / name, ignore_errors=True)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
