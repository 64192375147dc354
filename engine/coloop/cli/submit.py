"""`coloop run --address http://...`: the run as a Ray job on a cluster, followed from here.

The job runs `coloop run` on the cluster with the loop and its small data files uploaded. Its log
stream carries every event as a marked line, from which the same run folder is written on this
machine. Ctrl-C asks the run to stop and waits for its checkpoint; a second Ctrl-C detaches from it
and leaves it running.
"""

import tempfile
from pathlib import Path

from rich.console import Console

from coloop.cli.check import Source
from coloop.cli.watch import Listener, RunDisplay, follow_run, print_event
from coloop.errors import RunFolderExists
from coloop.runtime.run_files.events import StopRequest
from coloop_server.launchers.protocol import Handle, LaunchFailed, Order
from coloop_server.launchers.ray_job import RayJobLauncher
from coloop_server.runs.folder import RunFolder
from coloop_server.settings import Settings

EXIT = {"finished": 0, "stopped": 130}
FAILED = 3


def submit(
    console: Console,
    loop: Source,
    address: str,
    *,
    runs_dir: Path,
    run_id: str,
    force: bool,
    as_json: bool,
) -> int:
    """Start the job, display it until it ends, and return the exit code."""
    folder = (runs_dir / run_id).resolve()
    if folder.exists() and any(folder.iterdir()):
        raise RunFolderExists(f"{folder} exists and is not empty; choose another run id")
    with tempfile.TemporaryDirectory(prefix="coloop-job-") as work:
        data_dir = Path(work)
        spec = data_dir / f"{run_id}.yaml"
        spec.write_text(loop.text, encoding="utf-8")
        launcher = RayJobLauncher(
            Settings(data_dir=data_dir, ray_address=address, ray_shares_runs_dir=False)
        )
        order = Order(
            run_id=run_id,
            attempt=1,
            spec=spec,
            folder=folder,
            log=folder / "engine.log",
            root=loop.root.resolve(),
            resume=None,
            force=force,
            tell=lambda text: console.print(text, highlight=False),
        )
        try:
            handle = launcher.start(order, launcher.plan(run_id, attempt=1))
        except LaunchFailed as failed:
            console.print(f"[red]{failed}[/]", highlight=False)
            return FAILED
        try:
            with RunDisplay(console) as display:
                take = print_event if as_json else display.take
                return _follow(console, launcher, handle, folder, take)
        finally:
            launcher.close(runs_go_on=True)


def _follow(
    console: Console, launcher: RayJobLauncher, handle: Handle, folder: Path, take: Listener
) -> int:
    def is_alive() -> bool:
        return launcher.check(handle).is_alive

    try:
        state = follow_run(folder, take, is_alive)
    except KeyboardInterrupt:
        console.print(
            "stopping the run; press Ctrl-C again to detach and leave it running", highlight=False
        )
        launcher.ask(handle, RunFolder(folder), StopRequest())
        state = follow_run(folder, take, is_alive)
    if state is None:
        console.print(
            f"[red]the job ended without a final state: {launcher.check(handle).reason}[/]"
        )
    return EXIT.get(state or "", FAILED)
