"""The loop, the same for every schedule and graph.

while the schedule is not over:
    enter the phase         snapshots and copies, `do`
    evaluate                probes that are due, with the current weights
    obey                    triggers, requests, checkpoints
    steps                   load → generate → score → credit → learn → sync → write,
                            one at a time or several at once, until something is due between two
"""

from coloop.runtime.session import Session


def run_loop(session: Session) -> None:
    """Run a session to its end; a stop raises `StopRequested` after everything was saved."""
    session.begin()
    while not session.timeline.is_over:
        if session.timeline.must_enter:
            session.enter_phase()
        session.evaluate()
        session.obey()
        if not session.run_steps():
            session.leave_phase()
    session.evaluate(is_last=True)
    session.finish()
