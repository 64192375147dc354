"""Runs a loop as a Ray job, on a Ray of the server's own or on a cluster at an address.

    server --jobs API--> Ray --shell=no user text--> coloop run SPEC --runs-dir ... --run-id ...
       |                                               | writes the run folder
       '------ tails the folder, or, where the cluster does not see it, follows the job's log

The entry names only paths and ids that the server made. Ray is imported inside functions, because
importing the service must stay light.
"""

import shlex
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from coloop.events import ControlRequest
from coloop_server.launchers.follow import Follower
from coloop_server.launchers.local_ray import LocalRay
from coloop_server.launchers.protocol import Handle, LaunchFailed, Liveness, Order
from coloop_server.launchers.upload import build_upload
from coloop_server.runs.folder import RunFolder
from coloop_server.settings import Settings

if TYPE_CHECKING:
    from ray.job_submission import JobSubmissionClient

END_SECONDS = 15.0
REMOTE_RUNS_DIR = "runs"


class RayJobLauncher:
    def __init__(self, settings: Settings) -> None:
        self.driver = settings.driver
        self.base = settings.allowed_roots[0]
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
        handle = {"job_id": job_id, "address": address, "shared": self.is_shared}
        self.follow(handle, RunFolder(order.folder))
        return handle

    def entry(self, order: Order) -> str:
        if self.is_shared:
            return shlex.join([*self.driver, str(order.spec), *order.options()])
        options = ["--runs-dir", REMOTE_RUNS_DIR, *order.options()[2:]]
        return shlex.join([*self.driver, "spec.yaml", *options])

    def runtime_env(self, order: Order) -> dict[str, Any]:
        if self.is_shared:
            return {"env_vars": {"PYTHONUNBUFFERED": "1"}}
        upload = build_upload(order.spec, order.spec.with_suffix(".upload"), self.base)
        variables = {"PYTHONUNBUFFERED": "1", "COLOOP_MARKED_EVENTS": "1"}
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
        return self.ask_by_job(handle, folder.path.name, request)

    def ask_by_job(self, handle: Handle, run_id: str, request: ControlRequest) -> bool:
        """A short second job hands the request to the named actor of the run."""
        command = [self.driver[0], "-m", "coloop_server.launchers.ask_by_job", run_id]
        variables = {"COLOOP_REQUEST": request.model_dump_json()}
        with suppress(LaunchFailed, *ray_errors()):
            self.client(handle["address"]).submit_job(
                entrypoint=shlex.join(command), runtime_env={"env_vars": variables}
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


def ray_errors() -> tuple[type[Exception], ...]:
    """What Ray's client raises when a cluster does not answer, refuses, or is asked for nothing."""
    from ray.exceptions import RayError

    return (RayError, RuntimeError, ValueError, ConnectionError, OSError)
