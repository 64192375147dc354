"""The same loop at a small scale: tiny models, a few rows and steps, on a CPU.

    spec --rehearsed--> Rehearsal(spec, notes)    the same nodes, edges, heads, pools and phases
    events --tell--> RehearsalResult(stages, failures)    what ran, who learned, what did not happen

Knows loops and events, no tensors: a rehearsed loop is an ordinary loop, run as any other. What a
loop asks for that no run carries out at any size is refused as in a run; what is made smaller and
what is put in another's place is told in a note.
"""

from coloop.explain.rehearsal.rehearse import STEPS, Rehearsal, rehearsed
from coloop.explain.rehearsal.report import RehearsalResult, tell

__all__ = ["STEPS", "Rehearsal", "RehearsalResult", "rehearsed", "tell"]
