"""A run in this process, in one thread."""

from pathlib import Path
from typing import Any

from coloop.runtime.checkpoints.run_folder import RunRequest
from coloop.spec.io import parse


def request_of(place: Path, text: str, *, goes_on: bool, **options: Any) -> RunRequest:
    """To begin or go on with the run `place/run`."""
    spec = parse(text).spec
    assert spec is not None
    return RunRequest(
        spec=spec,
        text=text,
        root=place,
        runs_dir=place,
        run_id="run",
        resume=place / "run" if goes_on else None,
        cluster="local",
        threads=1,
        **options,
    )
