"""What the program meets: exceptions of coloop, picklable across processes.

What a user writes wrongly is a `Diagnostic`, collected and never raised. An exception of this
tree ends an operation: a file that cannot be read, a worker that died, user code that raised.

    ColoopError
      SpecUnreadable          a loop file is missing or its text gives no spec
      SpecProblem             an override or a patch does not fit the spec (carries the diagnostics)
      PresetNotFound          no loop, hardware or model preset of that name
      SettingInvalid          a variable of the environment has a value that means nothing
      RunFolderExists         a run folder would be overwritten
      RunNotFound             no such run, or it cannot be resumed
      RunBusy                 another process writes into the run folder
      PlanRefused             the compiler refuses a valid spec (carries the diagnostics)
      PlanInconsistent        the compiler made a plan that cannot hold (an error of coloop itself)
      PlacementTimeout        the cluster did not give what the plan wants in time
      WorkerDied              a process of a pool ended
      StageStalled            a process of a pool is alive and makes no progress
      WeightsNotUpdated       after a sync the engine does not hold the trainer's weights
      ModelUnavailable        a model cannot be found, or not loaded safely
      RequestRefused          no text can be written to a prompt: empty, too long, unknown signs
      BackendMissing          a library that the spec asks for is not installed
      DataError               a dataset cannot be read as the spec says
      UserCodeError           a reward, filter, template or environment of the user failed
      ServiceFailed           a service may not be called, does not answer, or answers nonsense
      StageFailed             something broke in a stage that has no error of its own
        OutOfMemory             a stage wants more memory than there is
      NothingLearned          for many steps in a row no goal of the phase came any nearer
      RowsMissing             rows that are bound to come did not come, in a stage's first step
      StorageFull             a checkpoint or sample file could not be written
      CheckpointError         a checkpoint is missing, damaged or of another loop
      StopRequested           the run was asked to stop (control flow, not a failure)

Each class keeps its arguments in `args`, so that `pickle` rebuilds it in another process.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence


class ColoopError(Exception):
    """Root of the tree; `code` is what events and HTTP answers call this kind of error."""

    code = "error"

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else self.__class__.__name__


class SpecUnreadable(ColoopError):
    """A loop file is missing, is no text, or its text gives no spec. `diagnostics` says why."""

    code = "spec.unreadable"

    def __init__(self, message: str, diagnostics: Sequence[object] = ()) -> None:
        super().__init__(message, tuple(diagnostics))
        self.diagnostics = tuple(diagnostics)


class SpecProblem(ColoopError, ValueError):
    """An override, a patch or a dict does not fit the loop language. `diagnostics` says where."""

    code = "spec.problem"

    def __init__(self, message: str, diagnostics: Sequence[object] = ()) -> None:
        super().__init__(message, tuple(diagnostics))
        self.diagnostics = tuple(diagnostics)


class PresetNotFound(ColoopError):
    """There is no preset of this name; the message names the nearest ones."""

    code = "preset.not_found"


class SettingInvalid(ColoopError):
    """A variable of the environment is set to something that it cannot mean."""

    code = "setting.invalid"


class RunFolderExists(ColoopError):
    """The folder that the run would write exists and holds something."""

    code = "run.folder_exists"


class RunNotFound(ColoopError):
    """There is no run of this id, or it holds nothing to resume."""

    code = "run.not_found"


class RunBusy(ColoopError):
    """Another process writes into the run folder; the message names it and says what to do."""

    code = "run.busy"


class PlanRefused(ColoopError):
    """A run refuses the loop. `diagnostics` says why, each with its code."""

    code = "plan.refused"

    def __init__(self, message: str, diagnostics: Sequence[object] = ()) -> None:
        super().__init__(message, tuple(diagnostics))
        self.diagnostics = tuple(diagnostics)


class PlanInconsistent(ColoopError):
    """A compiled plan breaks its own rules; the message names the stages. An error of coloop, not
    of the loop."""

    code = "plan.inconsistent"


class PlacementTimeout(ColoopError):
    """The cluster did not give the wanted processes or GPUs before the deadline."""

    code = "cluster.placement_timeout"


class RayNotStarted(ColoopError):
    """A Ray of the run's own did not start on this machine."""

    code = "cluster.ray_not_started"


class ClusterNotReached(ColoopError):
    """No Ray answers at the address that was named."""

    code = "cluster.not_reached"


class WorkerDied(ColoopError):
    """A worker process ended while work was asked of it; `rank` is None where its pool had ended
    before."""

    code = "cluster.worker_died"

    def __init__(self, message: str, pool: str | None = None, rank: int | None = None) -> None:
        super().__init__(message, pool, rank)
        self.pool = pool
        self.rank = rank


class StageStalled(ColoopError):
    """A host made no progress for longer than the cluster's deadline allows."""

    code = "cluster.stage_stalled"

    def __init__(self, message: str, pool: str | None = None, rank: int | None = None) -> None:
        super().__init__(message, pool, rank)
        self.pool = pool
        self.rank = rank


class WeightsNotUpdated(ColoopError):
    """After a sync, the engine scores the fixed probe not as the trainer does, or as before."""

    code = "sync.weights_not_updated"


class ModelUnavailable(ColoopError):
    """A model is missing, unsafe to load, or not what the spec says; the message says which, and
    names node and field where they are known."""

    code = "model.unavailable"

    def __init__(self, message: str, node: str | None = None, field: str | None = None) -> None:
        super().__init__(message, node, field)
        self.node = node
        self.field = field


class RequestRefused(ColoopError):
    """No completion can be given for a prompt; the message names the row and the limit."""

    code = "rollout.request_refused"


class BackendMissing(ColoopError):
    """A library that the spec asks for is not installed; the message names the extra."""

    code = "backend.missing"


class DataError(ColoopError):
    """A dataset cannot be read as the spec says; the message names node, field, file, line."""

    code = "data.unreadable"

    def __init__(self, message: str, node: str | None = None, field: str | None = None) -> None:
        super().__init__(message, node, field)
        self.node = node
        self.field = field


class UserCodeError(ColoopError):
    """Code of the user (reward, filter, template, environment) failed or answered wrongly."""

    code = "user_code.failed"

    def __init__(
        self,
        message: str,
        node: str | None = None,
        row: int | None = None,
        traceback: str | None = None,
    ) -> None:
        super().__init__(message, node, row, traceback)
        self.node = node
        self.row = row
        self.traceback = traceback


class ServiceFailed(ColoopError):
    """A service of a node may not be called, does not answer, or answers nonsense; the message
    names node, field and address, and holds no secret."""

    code = "service.failed"

    def __init__(self, message: str, node: str | None = None, field: str | None = None) -> None:
        super().__init__(message, node, field)
        self.node = node
        self.field = field


class StageFailed(ColoopError):
    """Something broke in a stage that has no error of its own: a library's, or a bug. The message
    names stage and step, and what it was."""

    code = "run.stage_failed"

    def __init__(
        self,
        message: str,
        node: str | None = None,
        stage: str | None = None,
        step: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, node, stage, step, hint)
        self.node = node
        self.stage = stage
        self.step = step
        self.hint = hint


class OutOfMemory(StageFailed):
    """A stage wants more memory than there is; the hint names the fields that lower it."""

    code = "run.out_of_memory"


class NothingLearned(ColoopError):
    """For many steps in a row nothing was learned and no buffer got a row; the message says why."""

    code = "run.nothing_learned"


class RowsMissing(ColoopError):
    """A stage got no rows in its first step where the plan is certain of some; the message names
    stage, edge and what was expected."""

    code = "run.rows_missing"

    def __init__(
        self,
        message: str,
        node: str | None = None,
        stage: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, node, stage, hint)
        self.node = node
        self.stage = stage
        self.hint = hint


class StorageFull(ColoopError):
    """A file could not be written because the disk or the quota is full."""

    code = "storage.full"


def is_full(error: Exception) -> bool:
    """Whether an error says that the disk or the quota is full."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    return any(text in str(error) for text in ("No space left", "os error 28", "quota exceeded"))


class CheckpointError(ColoopError):
    """A checkpoint is missing, damaged, or belongs to a loop of another shape."""

    code = "checkpoint.unusable"


class StopRequested(ColoopError):
    """The run was asked to stop; raised at a safe point and caught by the loop alone."""

    code = "run.stop_requested"
