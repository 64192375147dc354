"""Exceptions of coloop, picklable across processes.

Mistakes in a loop are `Diagnostic`s, which are collected and not raised. These exceptions end an
operation: a file cannot be read, a worker died, user code raised.

The fields of an exception are its `args`, so that `pickle` can rebuild it in another process.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import ClassVar


@dataclass(eq=False, repr=False)
class ColoopError(Exception):
    """Base class; `code` names the kind of error in events and HTTP responses."""

    code: ClassVar[str] = "error"

    message: str = ""

    def __post_init__(self) -> None:
        self.args = tuple(getattr(self, field.name) for field in fields(self))

    def __str__(self) -> str:
        return str(self.message) or type(self).__name__


@dataclass(eq=False, repr=False)
class LoopRefused(ColoopError):
    """A loop cannot be read, changed or run; `diagnostics` say why, and may be empty."""

    diagnostics: Sequence[object] = ()

    def __post_init__(self) -> None:
        self.diagnostics = tuple(self.diagnostics)
        super().__post_init__()


@dataclass(eq=False, repr=False)
class WorkerFailed(ColoopError):
    """A worker process ended or is stuck; `rank` is None if its whole pool had already ended."""

    pool: str | None = None
    rank: int | None = None


@dataclass(eq=False, repr=False)
class NodeFailed(ColoopError):
    """Something that a node refers to cannot be used; `node` and `field` are None if unknown."""

    node: str | None = None
    field: str | None = None


class SpecUnreadable(LoopRefused):
    """A loop file is missing, not text, or not a valid loop."""

    code = "spec.unreadable"


class SpecProblem(LoopRefused, ValueError):
    """An override, a patch or a dict does not fit the loop language."""

    code = "spec.problem"


class PresetNotFound(ColoopError):
    """There is no preset of this name; the message names the nearest ones."""

    code = "preset.not_found"


class SettingInvalid(ColoopError):
    """An environment variable has an invalid value."""

    code = "setting.invalid"


class RunFolderExists(ColoopError):
    """The run folder already exists and is not empty."""

    code = "run.folder_exists"


class RunNotFound(ColoopError):
    """There is no run with this id, or nothing to resume from."""

    code = "run.not_found"


class RunBusy(ColoopError):
    """Another process writes to the run folder; the message names it and the fix."""

    code = "run.busy"


class PlanRefused(LoopRefused):
    """A run refuses the loop."""

    code = "plan.refused"


class PlanInconsistent(ColoopError):
    """A compiled plan breaks its own rules; the message names the stages. A bug in coloop, not in
    the loop."""

    code = "plan.inconsistent"


class PlacementTimeout(ColoopError):
    """The cluster did not provide the requested processes or GPUs before the deadline."""

    code = "cluster.placement_timeout"


class RayNotStarted(ColoopError):
    """The local Ray of the run did not start."""

    code = "cluster.ray_not_started"


class ClusterNotReached(ColoopError):
    """No Ray cluster answers at the given address."""

    code = "cluster.not_reached"


class WorkerDied(WorkerFailed):
    """A worker process ended during a call."""

    code = "cluster.worker_died"


class StageStalled(WorkerFailed):
    """A worker made no progress before the deadline of the cluster settings."""

    code = "cluster.stage_stalled"


class WeightsNotUpdated(ColoopError):
    """After a weight sync, log-probs of a probe differ between generator and trainer, or have not
    changed."""

    code = "sync.weights_not_updated"


class ModelUnavailable(NodeFailed):
    """A model is missing, unsafe to load, or not what the spec says; the message says which."""

    code = "model.unavailable"


class HubFailed(ColoopError):
    """The Hugging Face Hub does not answer, refuses, or lacks what was asked for; the message says
    where and what helps."""

    code = "hub.failed"


class RequestRefused(ColoopError):
    """A prompt or chat cannot be encoded or completed; the message says why."""

    code = "rollout.request_refused"


class BackendMissing(ColoopError):
    """A library that the loop needs is not installed; the message names the extra."""

    code = "backend.missing"


class DataError(NodeFailed):
    """A dataset does not match its description; the message names node, field, file and line."""

    code = "data.unreadable"


class ControlRefused(NodeFailed):
    """A loop has no control of the requested kind; the message says what was found."""

    code = "control.refused"


class SweepRefused(ColoopError):
    """The values to try make no sweep."""

    code = "sweep.refused"


@dataclass(eq=False, repr=False)
class UserCodeError(ColoopError):
    """User code (reward, filter, template, environment) failed or returned an invalid value."""

    code = "user_code.failed"

    node: str | None = None
    row: int | None = None
    traceback: str | None = None


class ServiceFailed(NodeFailed):
    """A service of a node is not allowed, does not answer, or answers with invalid data; the
    message names node, field and address, and contains no secret."""

    code = "service.failed"


@dataclass(eq=False, repr=False)
class StageFailed(ColoopError):
    """A stage failed because of a library or a bug; the message names stage, step and error."""

    code = "run.stage_failed"

    node: str | None = None
    stage: str | None = None
    step: int | None = None
    hint: str | None = None


class OutOfMemory(StageFailed):
    """A stage needs more memory than available; the hint names the fields that lower it."""

    code = "run.out_of_memory"


@dataclass(eq=False, repr=False)
class NothingLearned(ColoopError):
    """Many consecutive steps had no update and no row for a buffer; the message says why."""

    code = "run.nothing_learned"

    hint: str | None = None


@dataclass(eq=False, repr=False)
class RowsMissing(ColoopError):
    """A stage got no rows in its first step, though the plan requires some; the message names
    stage, edge and what was expected."""

    code = "run.rows_missing"

    node: str | None = None
    stage: str | None = None
    hint: str | None = None


class StorageFull(ColoopError):
    """A file could not be written because the disk or the quota is full."""

    code = "storage.full"


def is_full(error: Exception) -> bool:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    return any(text in str(error) for text in ("No space left", "os error 28", "quota exceeded"))


class CheckpointError(ColoopError):
    """A checkpoint cannot be written, is missing or damaged, or does not fit the loop."""

    code = "checkpoint.unusable"


class CheckpointMissing(CheckpointError):
    """A run has no checkpoint of the step that is asked for."""

    code = "run.no_checkpoint"


class CheckpointHasLink(CheckpointError):
    """A checkpoint contains a link, or lies behind one."""

    code = "run.has_link"


class NothingLeft(CheckpointError):
    """The schedule is over at the checkpoint from which a run would start."""

    code = "run.nothing_left"


class StopRequested(ColoopError):
    """The run was asked to stop; raised at a safe point, and caught by the run loop only."""

    code = "run.stop_requested"


class ImportRefused(ColoopError):
    """A configuration of another framework cannot be read; the message has place and fix."""

    code = "import.refused"


class ExportRefused(ColoopError):
    """A loop has no form in another framework; the message says which part and why."""

    code = "export.refused"
