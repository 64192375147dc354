"""The port table: what each node kind takes and gives, collected from the kinds."""

from coloop.spec.nodes import NODE_CLASSES
from coloop.spec.nodes.kind import (
    HANDLES,
    InPort,
    KindPorts,
    OutPort,
    PortPhase,
    PortType,
    When,
    accepts,
    is_of_use,
)

__all__ = [
    "HANDLES",
    "PORTS",
    "InPort",
    "KindPorts",
    "OutPort",
    "PortPhase",
    "PortType",
    "When",
    "accepts",
    "is_of_use",
]

PORTS: dict[str, KindPorts] = {kind: node.about.ports for kind, node in NODE_CLASSES.items()}
