"""How a run ended, in words and for good."""

import logging
import traceback

from coloop.errors import ColoopError, StorageFull, UserCodeError
from coloop.runtime.run_files.events import RunError, RunStateEvent, RunStateName
from coloop.runtime.run_files.recorder import Recorder
from coloop.runtime.session import Session

logger = logging.getLogger(__name__)

AT_ONCE = "interrupted at once; it goes on from its last checkpoint"
"""What is said of a run that was interrupted a second time, before it had stopped."""


def say_last(recorder: Recorder, last: RunStateEvent) -> None:
    """That a run is over is said last: who hears it can read all the rest, and has the machine for
    the next run. Nothing of the rest can change how the run ended."""
    try:
        recorder.record(last)
    except StorageFull as failure:
        logger.warning("that the run %s could not be written down: %s", last.state.value, failure)


def last_word(
    session: Session | None,
    state: RunStateName,
    error: RunError | None,
    at_once: str | None = None,
) -> RunStateEvent:
    """How the run ended; of a failure with the node and the step at which it was.

    Args:
        at_once: what to say of a run that was not ended in good order.
    """
    if error is None:
        return RunStateEvent(
            state=state,
            step=session.timeline.step if session else None,
            message=at_once or (session.best_words if session else None),
        )
    return RunStateEvent(
        state=state,
        error=error,
        message=error.message,
        node=error.node,
        step=session.step_at_work if session is not None else None,
    )


def error_of(failure: BaseException, session: Session | None) -> RunError:
    """Of a failure in the user's code the traceback is that of the user's code; the engine's own
    stands in the log."""
    own = failure.traceback if isinstance(failure, UserCodeError) else None
    stage = session.stage_at_work if session is not None else None
    lines = [own] if own else traceback.format_exception(failure)
    return RunError(
        code=getattr(failure, "code", "run.failed")
        if isinstance(failure, ColoopError)
        else "run.failed",
        message=str(failure) or type(failure).__name__,
        node=getattr(failure, "node", None) or (stage.node if stage else None),
        stage=getattr(failure, "stage", None) or (stage.name if stage else None),
        hint=getattr(failure, "hint", None),
        traceback="".join(lines)[-8000:],
    )
