"""What kinds say of their inputs agrees with their ports."""

from coloop.spec.lineage.walk import SCORE_INPUTS
from coloop.spec.nodes import NODE_CLASSES
from coloop.spec.ports import HANDLES, PORTS, PortType

ASIDE = {"library", "seed", "spare", "documents", "reference", "values"}
"""Inputs that play no part in a join."""

ASIDE_IN = {("evaluate", "rows"), ("evaluate", "pairs"), ("reference", "prompts")}
"""The same by kind, where inputs of that name take part in joins of other kinds."""


def test_every_input_is_rows_or_scores_or_aside() -> None:
    for kind, ports in PORTS.items():
        if kind == "buffer":
            continue
        named = {*NODE_CLASSES[kind].about.rows, *SCORE_INPUTS.get(kind, ())}
        for name, port in ports.inputs.items():
            aside = port.teaching or port.type in HANDLES or name in ASIDE
            assert (name in named) != (aside or (kind, name) in ASIDE_IN), (kind, name)


def test_scores_come_in_at_score_inputs_only() -> None:
    for kind, names in SCORE_INPUTS.items():
        types = {PORTS[kind].inputs[name].type for name in names}
        assert types <= {PortType.SCORES, PortType.LOG_PROBS}
