"""Which stage reads which ports, and which stage fills which: the one table that everything else
follows; each kind says it of itself (`spec/nodes`).

What runs in a phase is the closure of this table from the phase's goals; the order is a topological
sort of the same table. No algorithm is named here. Handles (`policy`, `check`, `tool`) are not in
it: they let one node call another and bring no rows, so they make no stage of whom they call.
"""

from collections.abc import Mapping
from typing import Final

from coloop.spec.nodes import NODE_CLASSES

READS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    kind: {verb: stage.reads for verb, stage in node.about.stages.items()}
    for kind, node in NODE_CLASSES.items()
}
"""By kind and verb, the ports that the stage reads."""

GIVES: Final[Mapping[str, Mapping[str, str]]] = {
    kind: {port: verb for verb, stage in node.about.stages.items() for port in stage.gives}
    for kind, node in NODE_CLASSES.items()
}
"""By kind and output port, the verb of the stage that fills it; a tool's rows are filled by the
stages in which it is called (`givers`)."""

WRITES: Final[Mapping[str, str]] = {
    kind: verb
    for kind, node in NODE_CLASSES.items()
    for verb, stage in node.about.stages.items()
    if stage.calls
}
"""By kind, the verb of the stage in which it calls its handles."""

CREDITED: Final = frozenset({"rewards"})
"""Teaching ports whose numbers pass through the node's credit stage before it learns."""

SERVING: Final = frozenset({"reference", "values", "prior"})
"""Learn ports that teach nothing themselves and are read only where an algorithm asks for them."""

USES_WEIGHTS: Final = frozenset({"generate", "score"})
"""Verbs that use a group's weights without changing them."""

CONCAT_PORTS: Final = frozenset(
    (kind, port) for kind, node in NODE_CLASSES.items() for port in node.about.concat
)
"""Ports that take their edges one after another, whatever the node's join."""
