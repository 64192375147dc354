"""The table of inputs agrees with the port table."""

from coloop.spec.lineage.inputs import PAIRS_INPUTS, ROW_INPUTS, SCORE_INPUTS
from coloop.spec.ports import HANDLES, PORTS, PortType

ASIDE = {"library", "seed", "spare", "documents", "reference", "values"}
"""Inputs that play no part in a join."""

HELD_OUT = {("evaluate", "rows"), ("evaluate", "pairs")}


def test_every_input_is_rows_or_scores_or_aside() -> None:
    for kind, ports in PORTS.items():
        if kind == "buffer":
            continue
        named = {*ROW_INPUTS.get(kind, ()), *SCORE_INPUTS.get(kind, ())}
        if kind == "pairs":
            named |= {port for names in PAIRS_INPUTS.values() for port in names}
        for name, port in ports.inputs.items():
            aside = port.teaching or port.type in HANDLES or name in ASIDE
            assert (name in named) != (aside or (kind, name) in HELD_OUT), (kind, name)


def test_scores_come_in_at_score_inputs_only() -> None:
    for kind, names in SCORE_INPUTS.items():
        types = {PORTS[kind].inputs[name].type for name in names}
        assert types <= {PortType.SCORES, PortType.LOG_PROBS}
