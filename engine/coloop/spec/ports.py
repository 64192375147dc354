"""The port table: what each node kind takes and gives, collected from the kinds."""

from coloop.spec.nodes import NODE_CLASSES
from coloop.spec.nodes.kind import HANDLES as HANDLES
from coloop.spec.nodes.kind import InPort as InPort
from coloop.spec.nodes.kind import NodeKind
from coloop.spec.nodes.kind import OutPort as OutPort
from coloop.spec.nodes.kind import PortType as PortType
from coloop.spec.nodes.kind import accepts as accepts
from coloop.spec.nodes.kind import is_of_use as is_of_use

PORTS: dict[str, NodeKind] = {kind: node.about for kind, node in NODE_CLASSES.items()}
