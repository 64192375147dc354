"""Evaluations of a step's own tables whose tables no step has.

Such an evaluation causes nothing to run but scorers without weights on rows that are there. So a
verifier or reward model that it reads has to run for somebody else: for a learner, a buffer or a
filter. Found in the unrolled steps.
"""

from collections.abc import Iterator

from coloop.plan.unrolled import Unrolled
from coloop.spec.diagnostics import Diagnostic, Severity
from coloop.spec.graph import Edge
from coloop.spec.nodes import EvaluateNode
from coloop.validate.facts import found


def tables_are_there_to_measure(unrolled: Unrolled) -> Iterator[Diagnostic]:
    """What an evaluation of the step's own tables reads runs in some phase."""
    running = frozenset(
        giver for phase in unrolled.phases for stage in phase.step.stages for giver in stage.givers
    )
    for name, node in unrolled.spec.nodes.items():
        if not isinstance(node, EvaluateNode) or node.instead_of or node.of:
            continue
        for edge in unrolled.spec.graph.edges_into(name):
            if edge.source.node not in running:
                yield _unmeasured(edge)


def _unmeasured(edge: Edge) -> Diagnostic:
    probe, scorer = edge.target.node, edge.source.node
    return found(
        "structure.never_measured",
        f"`{probe}` measures nothing of `{scorer}`: it reads the tables of the step, but no phase "
        f"runs `{scorer}`, because nothing learns from it",
        severity=Severity.WARNING,
        hint=(
            "connect held-out rows and name the node that they replace in `instead_of`, or let a "
            f"node learn from, store or filter by the scores of `{scorer}`"
        ),
        node=probe,
        field=edge.target.port,
    )
