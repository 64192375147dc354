"""Runs a loop as a Ray job, on a Ray of the server's own or on a cluster at an address.

    server --jobs API--> Ray --shell=no user text--> coloop run SPEC --runs-dir ... --run-id ...
       |                                               | writes the run folder
       '------ tails the folder, or, where the cluster does not see it, follows the job's log

The entry names only paths and ids that the server made. Ray is imported inside functions, because
importing the service must stay light.
"""

import shlex
import shutil
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coloop.errors import ColoopError
from coloop.events import ControlRequest
from coloop.plan.compile import compile_plan
from coloop.spec.io import load
from coloop_server.launchers.follow import Follower
from coloop_server.launchers.local_ray import LocalRay
from coloop_server.launchers.protocol import Handle, LaunchFailed, Liveness, Order
from coloop_server.launchers.upload import build_upload
from coloop_server.runs.folder import RunFolder
from coloop_server.settings import Settings

if TYPE_CHECKING:
    from ray.job_submission import JobSubmissionClient

END_SECONDS = 15.0
ASK = (
    "import os; file = open(os.environ['COLOOP_CONTROL_FILE'], 'a'); "
    "file.write(os.environ['COLOOP_REQUEST'] + chr(10)); file.close()"
)


class RayJobLauncher:
    def __init__(self, settings: Settings) -> None:
        self.driver = settings.driver
        self.remote_runs_dir = settings.ray_runs_dir
        self.address = settings.ray_address
        self.is_shared = settings.ray_address is None or settings.ray_shares_runs_dir
        self.local = LocalRay(settings.data_dir / "ray")
        self.lock = threading.Lock()
        self.clients: dict[str, JobSubmissionClient] = {}
        self.followers: dict[str, Follower] = {}

    def start(self, order: Order) -> Handle:
        address = self.address or self.local.ensure(order.tell).address
        client = self.client(address)
        order.tell("waiting for Ray to start the job")
        submission = f"{order.run_id}-{order.attempt}"
        try:
            job_id = client.submit_job(
                entrypoint=self.entry(order),
                submission_id=submission,
                runtime_env=self.runtime_env(order),
                metadata={"coloop_run": order.run_id},
            )
        except ray_errors() as error:
            raise LaunchFailed(f"Ray at {address} did not take the job: {error}") from error
        there = str(order.folder if self.is_shared else self.there(order))
        handle = {
            "job_id": job_id,
            "address": address,
            "shared": self.is_shared,
            "folder": there,
        }
        if not self.is_shared:
            keep_spec(order)
        self.follow(handle, RunFolder(order.folder))
        return handle

    def entry(self, order: Order) -> str:
        """The command of the job. The driver in it connects to the Ray that runs the job."""
        if not self.is_shared:
            order = replace(order, spec=Path("spec.yaml"), root=Path(), folder=self.there(order))
        command = [*self.driver, str(order.spec), *order.options(), "--address", "auto"]
        return shlex.join(command)

    def there(self, order: Order) -> Path:
        """The run folder on the cluster's own disk."""
        return Path(self.remote_runs_dir) / order.run_id

    def runtime_env(self, order: Order) -> dict[str, Any]:
        if self.is_shared:
            return {"env_vars": {"PYTHONUNBUFFERED": "1"}}
        upload = build_upload(order.spec, order.spec.with_suffix(".upload"), order.root)
        variables = {"PYTHONUNBUFFERED": "1", "COLOOP_MARKED_LINES": "1"}
        return {"env_vars": variables, "working_dir": str(upload)}

    def check(self, handle: Handle) -> Liveness:
        if self.is_own(handle) and not self.is_own_ray_alive(handle):
            return Liveness(False, "the Ray that it ran on is gone")
        try:
            info = self.client(handle["address"]).get_job_info(handle["job_id"])
        except LaunchFailed:
            return Liveness(True)  # not to be reached now is not dead
        except RuntimeError as error:
            is_gone = "not found" in str(error).lower() or "does not exist" in str(error).lower()
            return Liveness(not is_gone, "Ray knows nothing of its job any more")
        except ray_errors():
            return Liveness(True)
        if not info.status.is_terminal() or self.is_following(handle):
            return Liveness(True)
        return Liveness(False, f"its Ray job ended as {info.status.value}: {info.message or ''}")

    def ask(self, handle: Handle, folder: RunFolder, request: ControlRequest) -> bool:
        if handle["shared"]:
            return folder.ask(request)
        return self.ask_by_job(handle, request)

    def ask_by_job(self, handle: Handle, request: ControlRequest) -> bool:
        """A short second job, which runs where the driver does, appends to its control file."""
        variables = {
            "COLOOP_REQUEST": request.model_dump_json(),
            "COLOOP_CONTROL_FILE": str(Path(handle["folder"]) / "control.jsonl"),
        }
        with suppress(LaunchFailed, *ray_errors()):
            self.client(handle["address"]).submit_job(
                entrypoint=shlex.join([self.driver[0], "-c", ASK]),
                runtime_env={"env_vars": variables},
            )
            return True
        return False

    def end(self, handle: Handle) -> None:
        if self.is_own(handle) and not self.is_own_ray_alive(handle):
            return
        with suppress(LaunchFailed, *ray_errors()):
            self.client(handle["address"]).stop_job(handle["job_id"])

    def follow(self, handle: Handle, folder: RunFolder) -> None:
        if handle["shared"]:
            return
        with self.lock:
            follower = self.followers.get(handle["job_id"])
            if follower is None or not follower.is_running:
                client = self.client(handle["address"])
                follower = Follower(client, handle["job_id"], folder)
                self.followers[handle["job_id"]] = follower
                follower.start()

    def close(self, *, runs_go_on: bool) -> None:
        for follower in self.followers.values():
            follower.stop()
        if runs_go_on:
            self.local.leave()
        else:
            self.local.stop()

    def is_own(self, handle: Handle) -> bool:
        return self.address is None or handle["address"] != self.address

    def is_own_ray_alive(self, handle: Handle) -> bool:
        head = self.local.known()
        return head is not None and head.address == handle["address"]

    def is_following(self, handle: Handle) -> bool:
        follower = self.followers.get(handle["job_id"])
        return follower is not None and follower.is_running

    def client(self, address: str) -> "JobSubmissionClient":
        from ray.job_submission import JobSubmissionClient

        known = self.clients.get(address)
        if known is not None:
            return known
        headers = self.local.headers() if self.address is None else None
        try:
            client = JobSubmissionClient(address, headers=headers)
        except ray_errors() as error:
            raise LaunchFailed(f"the Ray cluster at {address} does not answer: {error}") from error
        self.clients[address] = client
        return client


def keep_spec(order: Order) -> None:
    """The run folder on this side has the loop as it was given, and its plan, too."""
    order.folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(order.spec, order.folder / "spec.yaml")
    with suppress(ColoopError):
        plan = compile_plan(load(order.spec))
        text = plan.model_dump_json(indent=1)
        (order.folder / "plan.json").write_text(text, encoding="utf-8")


def ray_errors() -> tuple[type[Exception], ...]:
    """What Ray's client raises when a cluster does not answer, refuses, or is asked for nothing."""
    from ray.exceptions import RayError

    return (RayError, RuntimeError, ValueError, ConnectionError, OSError)
