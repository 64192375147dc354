"""The node kinds: what can be written under `nodes.<id>`, one file each.

`Node` is their union, told apart by `kind`. Edges are not here: a node does not know what it is
connected to.
"""

from __future__ import annotations

from typing import Annotated, Any, get_args

from pydantic import Field

from coloop.spec.nodes.actor import ActorNode as ActorNode
from coloop.spec.nodes.buffer import BufferNode as BufferNode
from coloop.spec.nodes.critic import CriticNode as CriticNode
from coloop.spec.nodes.dataset import DatasetNode as DatasetNode
from coloop.spec.nodes.environment import EnvironmentNode as EnvironmentNode
from coloop.spec.nodes.evaluate import EvaluateNode as EvaluateNode
from coloop.spec.nodes.filter import FilterNode as FilterNode
from coloop.spec.nodes.kind import BaseNode as BaseNode
from coloop.spec.nodes.pairs import PairsNode as PairsNode
from coloop.spec.nodes.reference import ReferenceNode as ReferenceNode
from coloop.spec.nodes.reward import RewardNode as RewardNode
from coloop.spec.nodes.search import SearchNode as SearchNode
from coloop.spec.nodes.template import TemplateNode as TemplateNode
from coloop.spec.nodes.tool import ToolNode as ToolNode
from coloop.spec.nodes.verifier import VerifierNode as VerifierNode

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
    | EnvironmentNode
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
