"""Trackers: TensorBoard, Weights & Biases, MLflow and Trackio receive what a run says of itself.

    events, gauges --Feed--> calls of a `Tracker`

A run sends them through a queue of its own thread (`sink.py`), so that a tracker that is slow or
away never slows or ends it. `coloop log` sends the events of an old run.
"""

from coloop.tracking.feed import Feed, about_run
from coloop.tracking.registry import MODULES, extra_command, is_installed, new_tracker
from coloop.tracking.sink import TrackerSink
from coloop.tracking.tracker import RunAbout, Tracker

__all__ = [
    "MODULES",
    "Feed",
    "RunAbout",
    "Tracker",
    "TrackerSink",
    "about_run",
    "extra_command",
    "is_installed",
    "new_tracker",
]
