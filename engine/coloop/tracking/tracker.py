"""What a tracker receives."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Level = Literal["info", "warning", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAbout:
    """A run as it begins or resumes."""

    run: str
    """Id of the run, and of its run in the tracker: a resumed run continues there."""
    project: str
    """Project (W&B, Trackio) or experiment (MLflow)."""
    folder: Path
    """The run folder."""
    text: str
    """The loop as YAML."""
    config: Mapping[str, Any]
    """The loop as data."""
    picture: str
    """The graph as SVG."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text that a model generated."""

    node: str
    prompt: str
    completion: str
    score: float | None
    """Its reward, else the mean of its scores."""


class Tracker(ABC):
    """One run in a tracker. Methods are called from one thread, `begin` first and `end` last.

    Every method raises what the library raises. The caller then stops calling.
    """

    @abstractmethod
    def begin(self, about: RunAbout) -> None:
        """Open the run, or the one that has its id already."""

    @abstractmethod
    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """Values by name, `node/metric`. A step comes again where a run repeats it."""

    @abstractmethod
    def texts(self, step: int, texts: Sequence[Text]) -> None:
        """A few texts of a step."""

    @abstractmethod
    def alert(self, step: int, level: Level, title: str, message: str) -> None: ...

    @abstractmethod
    def checkpoint(self, step: int, folder: Path, *, best: bool) -> None:
        """Store a checkpoint as an artifact."""

    @abstractmethod
    def end(self, state: str) -> None:
        """Close the run; `state` is `finished`, `stopped` or `failed`."""
