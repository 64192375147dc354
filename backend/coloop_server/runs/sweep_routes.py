"""Sweeps over HTTP."""

from typing import Annotated

from fastapi import Path as PathParameter

from coloop_server.dependencies import SessionOf, SettingsOf, SupervisorOf
from coloop_server.errors import router_of
from coloop_server.runs import sweeps
from coloop_server.runs.schemas import NewSweep, RunSweep, StopLosers, SweepOutline

router = router_of("runs", "/sweeps")

SweepName = Annotated[str, PathParameter(max_length=128)]


@router.post("", operation_id="createSweep", status_code=201)
def create_sweep(body: NewSweep, settings: SettingsOf, supervisor: SupervisorOf) -> RunSweep:
    """Queue runs of a loop with several values of some settings. Runs that exist are not
    repeated."""
    return sweeps.start(supervisor, settings, body)


@router.get("", operation_id="listSweeps")
def list_sweeps(session: SessionOf) -> list[SweepOutline]:
    """Sweeps of the newest runs, the newest first."""
    return sweeps.list_sweeps(session)


@router.get("/{sweep}", operation_id="getSweep")
def get_sweep(sweep: SweepName, supervisor: SupervisorOf) -> RunSweep:
    """A sweep with the curves, means and spreads of its combinations of values."""
    return sweeps.show(supervisor, sweep)


@router.post("/{sweep}/stop", operation_id="stopSweepLosers", status_code=202)
def stop_sweep_losers(sweep: SweepName, body: StopLosers, supervisor: SupervisorOf) -> RunSweep:
    """Stop the runs of all combinations but the best so far."""
    return sweeps.stop_losers(supervisor, sweep, body.keep)
