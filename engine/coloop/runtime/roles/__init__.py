"""Roles: one for each node kind. A role has the state of its node; it knows no schedule and no
machines.
"""

from collections.abc import Callable

from coloop.plan.types import Plan
from coloop.runtime.roles.actor import ActorRole
from coloop.runtime.roles.buffer import BufferRole
from coloop.runtime.roles.credit.credit import CreditRole
from coloop.runtime.roles.critic import CriticRole
from coloop.runtime.roles.dataset import DatasetRole
from coloop.runtime.roles.environment import EnvironmentRole
from coloop.runtime.roles.evaluate import EvaluateRole
from coloop.runtime.roles.filter import FilterRole
from coloop.runtime.roles.group import GroupRole
from coloop.runtime.roles.pairs import PairsRole
from coloop.runtime.roles.protocol import Context, Role
from coloop.runtime.roles.reference import ReferenceRole
from coloop.runtime.roles.reward import RewardRole
from coloop.runtime.roles.search import SearchRole
from coloop.runtime.roles.template import TemplateRole
from coloop.runtime.roles.tool import ToolRole
from coloop.runtime.roles.verifiers import verifier_role

ROLES: dict[str, Callable[[str, Context], Role]] = {
    "actor": ActorRole,
    "buffer": BufferRole,
    "critic": CriticRole,
    "dataset": DatasetRole,
    "environment": EnvironmentRole,
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
"""Prefix of a node's name for its credit role, whose state is separate, since both may run at
once."""


def build_roles(context: Context) -> dict[str, Role]:
    """A role for every node, and a credit role for each that may learn from rewards."""
    nodes = context.spec.nodes
    roles = {name: ROLES[node.kind](name, context) for name, node in nodes.items()}
    credited = [name for name, node in nodes.items() if hasattr(node, "credit")]
    return {**roles, **{f"{CREDIT}{name}": CreditRole(name, context) for name in credited}}


def build_group_roles(context: Context, plan: Plan) -> dict[str, Role]:
    return {
        weights.name: GroupRole(weights.name, context) for weights in plan.weights if weights.trains
    }
