"""The processes of docker-compose.yml without docker: PostgreSQL, a Ray head, the server.

Commands and environments are those of the file, with addresses and folders of this test; secrets
come from files that the file's own script makes. The quick start, cut short, runs through them.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import Any

import httpx
import pytest
from ruamel.yaml import YAML
from tests.backend.conftest import eventually  # noqa: F401
from tests.backend.postgres import is_up, running
from tests.backend.servers import SOURCES, Server, pump, wait_for_url

from coloop.spec.presets import load_loop_text
from coloop_server.launchers import has_ray
from coloop_server.launchers.local_ray import free_ports
from coloop_server.own_ray.folder import list_jobs
from coloop_server.processes import end_group, identity

ROOT = Path(__file__).resolve().parents[2]
END_SECONDS = 30.0

pytestmark = [
    pytest.mark.attack,
    pytest.mark.slow,
    pytest.mark.ray,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not has_ray(), reason="Ray is not installed"),
]

Eventually = Callable[..., Any]


def service(name: str) -> dict[str, Any]:
    """A service of the file."""
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    found: dict[str, Any] = YAML(typ="safe", pure=True).load(text)["services"][name]
    return found


def bare_environment(**given: str) -> dict[str, str]:
    """What a container would have: nothing of this process but where programs are."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return {**kept, "PYTHONPATH": SOURCES, "PYTHONUNBUFFERED": "1", "COLOOP_CORES": "1", **given}


@contextmanager
def process(command: list[str], folder: Path, **environment: str) -> Iterator[Server]:
    """A process with all that it starts, ended in the end."""
    started = subprocess.Popen(
        command,
        cwd=folder,
        env=bare_environment(**environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    begun = identity(started.pid) or "gone"
    lines: Queue[str] = Queue()
    threading.Thread(target=pump, args=(started, lines), daemon=True).start()
    try:
        yield Server(started, "", lines)
    finally:
        end_group(started.pid, begun, seconds=END_SECONDS)
        started.wait(END_SECONDS)


@contextmanager
def ray_head(folder: Path, token: Path, eventually: Eventually) -> Iterator[str]:  # noqa: F811
    """The Ray head of the file, as the address of its jobs API."""
    port, dashboard, client, agent, agent_grpc = free_ports(5)
    command = list(service("ray-head")["command"])
    assert command[0] == "ray"
    own = {"--port": port, "--dashboard-port": dashboard, "--dashboard-host": "127.0.0.1"}
    told = [
        f"{one.partition('=')[0]}={own.get(one.partition('=')[0], '')}".rstrip("=")
        for one in command[1:]
    ]
    command = [sys.executable, "-m", "ray.scripts.scripts", *told, "--node-ip-address=127.0.0.1"]
    command += [f"--ray-client-server-port={client}", f"--temp-dir={folder / 'ray'}"]
    command += [f"--dashboard-agent-listen-port={agent}"]
    command += [f"--dashboard-agent-grpc-port={agent_grpc}"]
    environment = {**service("ray-head")["environment"], "RAY_AUTH_TOKEN_PATH": str(token)}
    headers = {"Authorization": f"Bearer {token.read_text()}"}
    address = f"http://127.0.0.1:{dashboard}"
    with process(command, folder, **environment) as head:

        def is_ready() -> bool:
            assert head.process.poll() is None, list(head.lines.queue)[-20:]
            return list_jobs(address, headers) is not None

        eventually(is_ready, 120)
        assert list_jobs(address, {}) is None, "Ray's jobs API asks for no token"
        yield address


def secrets_in(folder: Path, database: str) -> dict[str, str]:
    """The secrets of the file, with the address of this test's database."""
    script = ["sh", str(ROOT / "tools" / "compose_secrets.sh")]
    subprocess.run(script, cwd=folder, check=True)
    places = folder / "secrets"
    password = (places / "postgres_password").read_text()
    (places / "coloop_database_url").unlink()
    (places / "coloop_database_url").write_text(database.replace("coloop@", f"coloop:{password}@"))
    return {path.name: path.read_text() for path in places.iterdir()}


def short_quick_start() -> str:
    """The quick start, cut to a few steps."""
    text = load_loop_text("grpo-arithmetic")
    short = text.replace("steps: 2000", "steps: 4").replace("steps: 400", "steps: 3")
    assert short != text
    return short


def holding(folder: Path, secrets: dict[str, str]) -> list[str]:
    """Files below a folder in which a secret stands."""
    return [
        f"{path}: {name}"
        for path in folder.rglob("*")
        if path.is_file()
        for name, secret in secrets.items()
        if secret.encode() in path.read_bytes()
    ]


def test_the_quick_start_runs_through_the_services_of_the_file(
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    eventually: Eventually,  # noqa: F811
) -> None:
    short = tmp_path_factory.mktemp("r", numbered=True)
    with running() as database:
        eventually(lambda: is_up(database), 60)
        secrets = secrets_in(tmp_path, database)
        token_file = tmp_path / "secrets" / "ray_auth_token"
        with ray_head(short, token_file, eventually) as ray_address:
            environment = {
                **service("server")["environment"],
                "RAY_AUTH_TOKEN_PATH": str(token_file),
                "COLOOP_SECRETS_DIR": str(tmp_path / "secrets"),
                "COLOOP_RUNS_DIR": str(tmp_path / "runs"),
                "COLOOP_ALLOWED_ROOTS": str(tmp_path),
                "COLOOP_ALLOWED_HOSTS": "",
                "COLOOP_RAY_ADDRESS": ray_address,
            }
            command = list(service("server")["command"])
            assert command[0] == "coloop"
            own = {"0.0.0.0": "127.0.0.1", "8321": str(free_ports(1)[0]), "/data": "data"}
            command = [sys.executable, "-m", *(own.get(one, one) for one in command)]
            with process(command, tmp_path, **environment) as server:
                server.url, shown = wait_for_url(server)
                server.token = secrets["coloop_token"]
                assert shown == "", "the token that was set is printed"
                check_quick_start(server, eventually)
                told = Path(f"/proc/{server.process.pid}/environ").read_bytes().decode()
                assert not any(secret in told for secret in secrets.values())
    assert holding(tmp_path / "runs", secrets) == []
    assert holding(tmp_path / "data", secrets) == []


def check_quick_start(server: Server, eventually: Eventually) -> None:  # noqa: F811
    with httpx.Client(base_url=server.url, trust_env=False) as stranger:
        assert stranger.get("/api/runs").status_code == 401
    with server.http as http:
        assert http.get("/api/health").status_code == 200
        made = http.post("/api/loops", json={"yaml": short_quick_start()})
        assert made.status_code == 201
        run = http.post("/api/runs", json={"yaml": short_quick_start()}).json()

        def is_over() -> bool:
            found = http.get(f"/api/runs/{run['id']}").json()
            assert found["state"] not in ("failed", "stopped"), found
            return bool(found["state"] == "finished")

        eventually(is_over, 400)
        page = http.get(f"/api/runs/{run['id']}/events", params={"limit": 10000}).json()
        told = [one["seq"] for one in page["events"]]
        assert told == list(range(1, len(told) + 1))
        assert http.get(f"/api/runs/{run['id']}").json()["launcher"] == "ray_job"
        assert len(http.get("/api/loops").json()) >= 1
