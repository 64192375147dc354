"""The loop. One for every schedule and every graph: phases, steps, stages, evaluations,
checkpoints.

while the schedule goes on:
    enter the phase         snapshots and copies, `do`
    evaluate what is due    probes on the weights as they are now
    obey                    triggers, requests, checkpoints
    steps                   load → generate → score → credit → learn → sync → write,
                            one at a time or several at once, until something lies between two
"""

from coloop.runtime.session import Session


def run_loop(session: Session) -> None:
    """Run a session to its end; a stop leaves it by `StopRequested` with everything saved."""
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
