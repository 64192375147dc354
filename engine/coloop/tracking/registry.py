"""The trackers by name. A new one is a file with a class, a line here, an extra of its name in
`pyproject.toml`, and its name in `coloop.spec.placement.TrackerName`."""

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec

from coloop.errors import ColoopError
from coloop.spec.placement import TrackerName
from coloop.tracking.tracker import Tracker

MODULES: Mapping[TrackerName, str] = {
    "tensorboard": "TensorBoard",
    "wandb": "WeightsAndBiases",
    "mlflow": "MLflow",
    "trackio": "Trackio",
}
"""By name of the tracker, which is also that of its library and of its module
`coloop.tracking.to_<name>`, the class."""


class TrackerMissing(ColoopError):
    """The library of a tracker is not installed."""

    code = "run.tracker_missing"


def is_installed(name: TrackerName) -> bool:
    return find_spec(name) is not None


def extra_command(name: TrackerName) -> str:
    """The command that installs the library of a tracker."""
    return f"pip install 'coloop[{name}]'"


def new_tracker(name: TrackerName) -> Tracker:
    """A tracker that has not begun.

    Raises:
        TrackerMissing: its library is not installed.
    """
    if not is_installed(name):
        raise TrackerMissing(f"`{name}` is not installed: {extra_command(name)}")
    tracker: Tracker = getattr(import_module(f"coloop.tracking.to_{name}"), MODULES[name])()
    return tracker
