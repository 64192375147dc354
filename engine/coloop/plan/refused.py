"""Whether `run` accepts a valid loop, and if not, why: one finding for each cause.

Each check of `runnable` looks at one part, so one cause can produce several findings: a node of an
unsupported kind also has an unsupported algorithm and edges, and several actors may use the same
unsupported engine. Consequences of another finding are dropped, and equal findings are merged.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coloop.plan.compile import compile_plan
from coloop.plan.refusal import cause_of
from coloop.plan.runnable import check_runs
from coloop.plan.types import Plan
from coloop.plan.unrolled import Unrolled
from coloop.spec.diagnostics import Diagnostic
from coloop.spec.graph import LoopSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """The plan of a valid loop, and the reasons for which `run` would refuse it."""

    plan: Plan
    refusals: tuple[Diagnostic, ...]
    """Why a run refuses it; empty where it would start."""

    @property
    def sentence(self) -> str | None:
        """One line for a person, or nothing where a run would start."""
        if not self.refusals:
            return None
        return f"valid, but {refused_words(self.refusals)}"

    def to_json(self) -> dict[str, Any]:
        """The same for programs."""
        told = [one.model_dump(mode="json", exclude_none=True) for one in self.refusals]
        return {"runs": not told, "refusals": told}


def refused_words(refusals: Sequence[Diagnostic]) -> str:
    """The reasons for a refusal in one sentence, the same everywhere. No flag overrides them."""
    return refused_because(*(one.message for one in refusals))


def refused_because(*messages: str) -> str:
    """Like `refused_words`, from the messages of the findings."""
    return f"`run` refuses it: {'; '.join(map(cause_of, messages))}"


def outlook_of(
    spec: LoopSpec,
    unrolled: Unrolled | None = None,
    *,
    root: Path | None = None,
) -> Outlook:
    """The plan of a valid loop, and what stands against a run; see `compile_plan`."""
    plan = compile_plan(spec, unrolled, root=root)
    return Outlook(plan=plan, refusals=one_per_cause(spec, check_runs(spec, plan)))


def one_per_cause(spec: LoopSpec, found: list[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Findings without those that follow from others; the same about several nodes is one."""
    kinds = {one.node for one in found if one.field == "kind"}
    alike: dict[str, list[Diagnostic]] = {}
    for one in found:
        follows = one.node in kinds and one.field != "kind"
        if not follows and not _touches(spec, one, kinds):
            alike.setdefault(one.message, []).append(one)
    return tuple(_together(group) for group in alike.values())


def _touches(spec: LoopSpec, finding: Diagnostic, nodes: set[str | None]) -> bool:
    """Whether it is about an edge of one of these nodes."""
    head, _, rest = (finding.field or "").partition(".")
    if finding.node is not None or head != "edges" or not rest.partition(".")[0].isdigit():
        return False
    edge = spec.edges[int(rest.partition(".")[0])]
    return edge.source.node in nodes or edge.target.node in nodes


def _together(group: list[Diagnostic]) -> Diagnostic:
    first, *others = group
    nodes = list(dict.fromkeys(f"`{one.node}`" for one in others if one.node is not None))
    if not nodes:
        return first
    message = f"{first.message} (`{first.node}`, {', '.join(nodes)})"
    return first.model_copy(update={"message": message})
