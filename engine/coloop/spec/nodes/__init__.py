"""The node kinds: what can be written under `nodes.<id>`, one file each.

`Node` is their union, told apart by `kind`. Edges are not here: a node does not know what it is
connected to.
"""

from __future__ import annotations

from typing import Annotated, Any, get_args

from pydantic import Field

from coloop.spec.nodes.actor import ActorNode
from coloop.spec.nodes.buffer import BufferNode
from coloop.spec.nodes.critic import CriticNode
from coloop.spec.nodes.dataset import DatasetNode
from coloop.spec.nodes.evaluate import EvaluateNode
from coloop.spec.nodes.filter import FilterNode
from coloop.spec.nodes.kind import BaseNode, InMode, ModeName, NodeKind, Stage
from coloop.spec.nodes.pairs import PairsNode
from coloop.spec.nodes.reference import ReferenceNode
from coloop.spec.nodes.reward import RewardNode
from coloop.spec.nodes.search import SearchNode
from coloop.spec.nodes.template import TemplateNode
from coloop.spec.nodes.tool import ToolNode
from coloop.spec.nodes.verifier import VerifierNode

__all__ = [
    "KINDS",
    "NODE_CLASSES",
    "RUNNABLE_KINDS",
    "ActorNode",
    "BaseNode",
    "BufferNode",
    "CriticNode",
    "DatasetNode",
    "EvaluateNode",
    "FilterNode",
    "InMode",
    "ModeName",
    "Node",
    "NodeKind",
    "PairsNode",
    "ReferenceNode",
    "RewardNode",
    "SearchNode",
    "Stage",
    "TemplateNode",
    "ToolNode",
    "VerifierNode",
    "model_of",
]

Node = Annotated[
    DatasetNode
    | ActorNode
    | CriticNode
    | ReferenceNode
    | RewardNode
    | VerifierNode
    | TemplateNode
    | FilterNode
    | PairsNode
    | BufferNode
    | ToolNode
    | SearchNode
    | EvaluateNode,
    Field(discriminator="kind"),
]

NODE_CLASSES: dict[str, type[BaseNode]] = {
    get_args(cls.model_fields["kind"].annotation)[0]: cls for cls in get_args(get_args(Node)[0])
}
KINDS: tuple[str, ...] = tuple(NODE_CLASSES)
RUNNABLE_KINDS = frozenset(kind for kind, node in NODE_CLASSES.items() if node.about.runs)
"""Kinds that `run` carries out; the others can be drawn, checked and planned."""


def model_of(node: BaseNode) -> Any:
    """The `model` section of a node, or nothing."""
    return getattr(node, "model", None)
