"""Runs a loop as a Ray job on a cluster at an address.

    server --jobs API--> Ray --shell=no user text--> coloop run SPEC --runs-dir ... --run-id ...
       |                                               | writes the run folder
       '------ tails the folder, or, where the cluster does not see it, follows the job's log

The entry names only paths and ids that the server made. Ray is imported inside functions, because
importing the service must stay light.
"""

import logging
import shlex
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coloop.errors import ColoopError
from coloop.plan.compile import compile_plan
from coloop.runtime.run_files.events import ControlRequest
from coloop.spec.io import load
from coloop_server.launchers.follow import Follower
from coloop_server.launchers.protocol import Handle, LaunchFailed, Liveness, Order
from coloop_server.launchers.upload import build_upload
from coloop_server.private import write_private, write_private_bytes
from coloop_server.runs.folder import RunFolder
from coloop_server.settings import Settings

if TYPE_CHECKING:
    from coloop_server.launchers.ray_client import JobsClient

logger = logging.getLogger(__name__)

END_SECONDS = 20.0
TAKE_SECONDS = 60.0
"""How long a starting Ray is asked to take a job."""
POLL_SECONDS = 0.1
ASK = (
    "import os; file = open(os.environ['COLOOP_CONTROL_FILE'], 'a'); "
    "file.write(os.environ['COLOOP_REQUEST'] + chr(10)); file.close()"
)


class RayJobLauncher:
    def __init__(self, settings: Settings) -> None:
        self.driver = settings.driver
        self.roots = settings.roots
        self.remote_runs_dir = settings.ray_runs_dir
        self.address = settings.ray_address
        """The cluster for new jobs."""
        self.is_shared = settings.ray_shares_runs_dir
        self.lock = threading.Lock()
        self.clients: dict[str, JobsClient] = {}
        self.followers: dict[str, Follower] = {}

    def warm(self) -> None:
        """Nothing to do: the cluster is already running."""

    def plan(self, run_id: str, attempt: int) -> Handle:
        return {
            "job_id": f"{run_id}-{attempt}",
            "run_id": run_id,
            "shared": self.is_shared,
            "folder": str(self.there(run_id)),
        }

    def find(self, handle: Handle) -> Handle | None:
        """A job that an earlier server submitted."""
        if "address" in handle:
            return handle
        address = self.named_address()
        try:
            self.client(address).get_job_info(handle["job_id"])
        except ray_errors() as error:
            if is_unknown_job(error):
                return None
            raise LaunchFailed(f"Ray at {address} does not answer: {told(error)}") from error
        return {**handle, "address": address}

    def named_address(self) -> str:
        if self.address is None:
            raise LaunchFailed(
                "it belongs on a Ray cluster, and COLOOP_RAY_ADDRESS names none; set it to the "
                "address at which the run was started"
            )
        return self.address

    def start(self, order: Order, planned: Handle) -> Handle:
        address = self.named_address()
        client = self.client(address)
        order.tell("waiting for Ray to take the job and start its driver")
        self.submit(client, address, order, planned)
        handle = {**planned, "address": address}
        if not self.is_shared:
            keep_spec(order)
        self.follow(handle, RunFolder(order.folder))
        return handle

    def submit(self, client: "JobsClient", address: str, order: Order, planned: Handle) -> None:
        """A job that an earlier server submitted counts as this one. Ray may answer before it takes
        jobs, so submission is retried for a while."""
        submission = planned["job_id"]
        deadline = time.monotonic() + TAKE_SECONDS
        while True:
            try:
                with suppress(*ray_errors()):
                    client.get_job_info(submission)
                    return
                client.submit_job(
                    entrypoint=self.entry(order),
                    submission_id=submission,
                    runtime_env=self.runtime_env(order),
                    metadata={"coloop_run": order.run_id},
                )
                return
            except ray_errors() as error:
                if not takes_no_jobs_yet(error) or time.monotonic() > deadline:
                    text = f"Ray at {address} did not accept the job: {told(error)}"
                    raise LaunchFailed(text) from error
                time.sleep(POLL_SECONDS)

    def entry(self, order: Order) -> str:
        """The command of the job. The driver in it connects to the Ray that runs the job."""
        if not self.is_shared:
            order = replace(
                order, spec=Path("spec.yaml"), root=Path(), folder=self.there(order.run_id)
            )
        command = [*self.driver, str(order.spec), *order.options(), "--address", "auto"]
        return shlex.join(command)

    def there(self, run_id: str) -> Path:
        """The run folder on the cluster's disk."""
        return Path(self.remote_runs_dir) / run_id

    def runtime_env(self, order: Order) -> dict[str, Any]:
        variables = {"PYTHONUNBUFFERED": "1"}
        if self.is_shared:
            return {"env_vars": variables}
        folder = order.spec.with_suffix(".upload")
        upload = build_upload(order.spec, folder, order.root, self.roots)
        variables["COLOOP_MARKED_LINES"] = "1"
        return {"env_vars": variables, "working_dir": str(upload)}

    def check(self, handle: Handle) -> Liveness:
        try:
            info = self.client(handle["address"]).get_job_info(handle["job_id"])
        except LaunchFailed as error:
            return Liveness(True, str(error), is_reached=False)  # not reached now is not dead
        except ray_errors() as error:
            if is_unknown_job(error):
                return Liveness(False, "Ray no longer knows its job")
            reason = f"Ray at {handle['address']} does not answer: {told(error)}"
            return Liveness(True, reason, is_reached=False)
        if not info.status.is_terminal() or self.is_following(handle):
            return Liveness(True)
        return Liveness(False, f"its Ray job ended as {info.status.value}: {info.message or ''}")

    def ask(self, handle: Handle, folder: RunFolder, request: ControlRequest) -> bool:
        if handle["shared"]:
            return folder.ask(request)
        return self.ask_by_job(handle, request)

    def ask_by_job(self, handle: Handle, request: ControlRequest) -> bool:
        """Let a short second job, on the driver's machine, append to the control file."""
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

    def end(self, handle: Handle) -> bool:
        """Ray asks the driver to end, then kills it, and reports the end. A starting job does not
        hear it yet, so this is repeated."""
        deadline = time.monotonic() + END_SECONDS
        is_over = False
        try:
            while not is_over and time.monotonic() < deadline:
                self.client(handle["address"]).stop_job(handle["job_id"])
                info = self.client(handle["address"]).get_job_info(handle["job_id"])
                is_over = info.status.is_terminal()
                time.sleep(0 if is_over else POLL_SECONDS)
        except LaunchFailed:
            return False
        except ray_errors() as error:
            if not is_unknown_job(error):
                return False
            is_over = True
        if not is_over:
            return False
        while self.is_following(handle) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)  # what it wrote last is still on its way
        return True

    def follow(self, handle: Handle, folder: RunFolder) -> None:
        if handle["shared"]:
            return
        with self.lock:
            follower = self.followers.get(handle["job_id"])
            if follower is None:
                self.start_follower(handle, folder)
            elif not follower.is_running and not follower.is_done:
                self.start_follower(handle, folder)
                raise LaunchFailed("the reader of its log died and was restarted")

    def start_follower(self, handle: Handle, folder: RunFolder) -> None:
        follower = Follower(self.client(handle["address"]), handle["job_id"], folder)
        self.followers[handle["job_id"]] = follower
        follower.start()

    def let_go(self, handle: Handle) -> None:
        with self.lock:
            follower = self.followers.pop(handle["job_id"], None)
        if follower is not None:
            follower.stop()

    def close(self, *, runs_go_on: bool) -> None:
        for follower in self.followers.values():
            follower.stop()

    def is_following(self, handle: Handle) -> bool:
        follower = self.followers.get(handle["job_id"])
        return follower is not None and follower.is_running

    def client(self, address: str) -> "JobsClient":
        from coloop_server.launchers.ray_client import JobsClient

        known = self.clients.get(address)
        if known is not None:
            return known
        try:
            client = JobsClient(address)
        except ray_errors() as error:
            raise LaunchFailed(
                f"the Ray cluster at {address} does not answer: {told(error)}"
            ) from error
        self.clients[address] = client
        return client


def keep_spec(order: Order) -> None:
    """Write the loop and its plan into the local run folder."""
    order.folder.mkdir(parents=True, exist_ok=True)
    write_private_bytes(order.folder / "spec.yaml", order.spec.read_bytes())
    with suppress(ColoopError):
        plan = compile_plan(load(order.spec), root=order.root)
        write_private(order.folder / "plan.json", plan.model_dump_json(indent=1))


def is_unknown_job(error: Exception) -> bool:
    text = str(error).lower()
    return isinstance(error, RuntimeError) and ("not found" in text or "does not exist" in text)


def takes_no_jobs_yet(error: Exception) -> bool:
    """Whether the cluster takes no jobs yet, or broke off its answer."""
    text = str(error).lower()
    return "no available agent" in text or "connection aborted" in text


def told(error: Exception) -> str:
    """An error of Ray's client in words, without addresses and objects of this process."""
    import requests

    text = str(error)
    if isinstance(error, requests.Timeout):
        return "it takes longer than the client waits"
    if isinstance(error, requests.ConnectionError) or "HTTPConnectionPool" in text:
        return "nothing listens there" if "refused" in text.lower() else "the connection broke off"
    return text


def ray_errors() -> tuple[type[Exception], ...]:
    """Errors of Ray's client if a cluster is silent, refuses, or gets an invalid request."""
    from ray.exceptions import RayError

    return (RayError, RuntimeError, ValueError, ConnectionError, OSError)
