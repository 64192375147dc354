"""From a loop to its rehearsal: one small change after another to its plain document."""

from dataclasses import dataclass
from pathlib import Path

from coloop.explain.rehearsal.lines import scripted
from coloop.explain.rehearsal.machine import on_a_desk
from coloop.explain.rehearsal.models import tiny_models
from coloop.explain.rehearsal.rows import made_rows
from coloop.explain.rehearsal.schedule import short_schedule
from coloop.explain.rehearsal.services import without_services
from coloop.explain.rehearsal.sizes import few_rows
from coloop.spec.graph import LoopSpec
from coloop.spec.io import from_dict, require, to_dict

STEPS = 2
"""Most steps of a phase."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """A loop made small."""

    spec: LoopSpec
    notes: tuple[str, ...]
    """What stands in another's place, for the person who rehearses."""


def rehearsed(spec: LoopSpec, *, steps: int = STEPS, root: Path | None = None) -> Rehearsal:
    """The same loop, small enough for a CPU.

    Args:
        steps: most steps of each phase.
        root: where files of rows are looked for; None: none is there.

    Raises:
        SpecProblem: the smaller loop says what no loop may say.
    """
    document = to_dict(spec)
    notes = [*tiny_models(spec, document, root), *made_rows(spec, document, root)]
    few_rows(spec, document, steps)
    scripted(spec, document)
    short_schedule(document, steps)
    notes += [*without_services(document), *on_a_desk(document)]
    return Rehearsal(spec=require(from_dict(document)), notes=tuple(notes))
