"""Roles: one for each node kind that runs. A role owns what its node remembers; it knows neither
time nor machines."""

from collections.abc import Callable

from coloop.plan.types import Plan
from coloop.roles.actor import ActorRole
from coloop.roles.buffer import BufferRole
from coloop.roles.credit import CreditRole
from coloop.roles.critic import CriticRole
from coloop.roles.dataset import DatasetRole
from coloop.roles.evaluate import EvaluateRole
from coloop.roles.filter import FilterRole
from coloop.roles.group import GroupRole
from coloop.roles.pairs import PairsRole
from coloop.roles.protocol import Context, Role
from coloop.roles.reference import ReferenceRole
from coloop.roles.reward import RewardRole
from coloop.roles.search import SearchRole
from coloop.roles.template import TemplateRole
from coloop.roles.tool import ToolRole
from coloop.roles.verifier import verifier_role

ROLES: dict[str, Callable[[str, Context], Role]] = {
    "actor": ActorRole,
    "buffer": BufferRole,
    "critic": CriticRole,
    "dataset": DatasetRole,
    "evaluate": EvaluateRole,
    "filter": FilterRole,
    "pairs": PairsRole,
    "reference": ReferenceRole,
    "reward": RewardRole,
    "search": SearchRole,
    "template": TemplateRole,
    "tool": ToolRole,
    "verifier": verifier_role,
}


CREDIT = "credit:"
"""Before the name of a node: its credit, which remembers apart from what the node writes with, as
both may be at work at once."""


def build_roles(context: Context) -> dict[str, Role]:
    """A role for every node, and one for the credit of each that may learn from rewards."""
    nodes = context.spec.nodes
    roles = {name: ROLES[node.kind](name, context) for name, node in nodes.items()}
    credited = [name for name, node in nodes.items() if hasattr(node, "credit")]
    return {**roles, **{f"{CREDIT}{name}": CreditRole(name, context) for name in credited}}


def build_group_roles(context: Context, plan: Plan) -> dict[str, Role]:
    """A role for every weights group that trains."""
    return {
        weights.name: GroupRole(weights.name, context) for weights in plan.weights if weights.trains
    }
