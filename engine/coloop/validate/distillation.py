"""What learners are distilled from: teachers, their rows and prompts, and the reference of a KL."""

from collections.abc import Iterator
from typing import Final

from coloop.plan.settings.tokenizers import tokenizer_of
from coloop.spec.algorithm import (
    RewardsAlgorithm,
    algorithm_paths,
    distillations,
    reads,
    reference_edges,
    resolve_algorithm,
    taught_students,
)
from coloop.spec.diagnostics import Diagnostic, Fix, error
from coloop.spec.graph import Edge
from coloop.spec.levels import Relation
from coloop.spec.lineage import relate
from coloop.spec.nodes import ReferenceNode
from coloop.validate.facts import Facts

RELATED: Final = frozenset({Relation.SAME, Relation.UP, Relation.DOWN})


def one_reference_measures_a_kl(facts: Facts) -> Iterator[Diagnostic]:
    """Where several references are connected, `kl.reference` names that of the KL."""
    for name in facts.learners:
        edges = facts.walk.into(name, "reference")
        sources = list(dict.fromkeys(edge.source.node for edge in edges))
        for port, at, entry in algorithm_paths(facts.spec, name):
            if not isinstance(entry, RewardsAlgorithm) or "reference" not in reads(entry):
                continue
            if (name, port) not in facts.teaching_ports or not sources:
                continue
            named = resolve_algorithm(entry).kl.reference
            field = f"{at}.kl.reference"
            known = ", ".join(f"`{source}`" for source in sources)
            fixes = [Fix.set(f"Measure to {source}", field, source) for source in sources]
            if named is not None and named not in sources:
                yield error(
                    "learning.which_reference",
                    field,
                    f"the KL of `{name}.{port}` is measured to `{named}`, which is not connected "
                    f"to `{name}.reference`: {known} are",
                    f"connect `{named}.log_probs -> {name}.reference`, or name one of them",
                    *fixes,
                )
            elif named is None and len(reference_edges(facts.spec, name, port)) != 1:
                teaches = facts.spec.graph.is_taught_at(name, "reference")
                both = "the KL and the distillation both read it" if teaches else "only one can be"
                yield error(
                    "learning.which_reference",
                    field,
                    f"`{name}.reference` has {known}, and nothing says to which of them the KL of "
                    f"`{port}` is measured: {both}",
                    "name it in `kl.reference`; the others are teachers",
                    *(fixes if len(sources) > 1 else ()),
                )


def pairs_have_one_reference(facts: Facts) -> Iterator[Diagnostic]:
    """A preference loss compares with one reference."""
    for name in facts.learners:
        if "reference" not in facts.read_by(name, "pairs"):
            continue
        edges = [
            edge
            for edge in reference_edges(facts.spec, name, "pairs")
            if facts.is_connected(edge.source.node, "pairs")
        ]
        if len(edges) > 1:
            names = ", ".join(f"`{edge.source.node}`" for edge in edges)
            yield error(
                "learning.which_reference",
                f"nodes.{name}.reference",
                f"`{name}.pairs` is compared with one reference, but {names} score its pairs",
                "connect the pairs to one of them",
                Fix.remove(f"Remove {edges[1].label}", facts.place(edges[1])),
            )


def sampled_tokens_are_own(facts: Facts) -> Iterator[Diagnostic]:
    """Log-probs of sampled tokens teach a policy only about texts that it wrote itself."""
    for name, edge in _teachings(facts):
        if all(full.support != "sampled" for full in distillations(facts.spec, name)):
            continue
        group = facts.group_of.get(name)
        own = frozenset[str](group.members if group is not None else (name,))
        levels = facts.lineage.edge_levels(edge)
        others = sorted({str(one) for one in levels if not _is_of(facts, str(one.node), own)})
        if others:
            names = ", ".join(f"`{other}`" for other in others)
            at = next(
                at for port, at, _ in algorithm_paths(facts.spec, name) if port == "reference"
            )
            yield error(
                "learning.others_texts",
                f"{at}.support",
                f"`{edge.source.node}` brings texts of {names} to `{name}.reference`, but at "
                "sampled tokens a teacher can only correct what the policy itself wrote",
                "set `support` to `top_k` or `full`, or learn these texts by `demonstrations`",
                Fix.set("Compare likely words", f"{at}.support", "top_k"),
            )


def teachers_have_positive_weights(facts: Facts) -> Iterator[Diagnostic]:
    for name, edge in _teachings(facts):
        if edge.weight < 0:
            yield error(
                "learning.teacher_weight",
                f"{facts.place(edge)}.weight",
                f"the teacher `{edge.source.node}` of `{name}` has the weight {edge.weight:g}; "
                "weights are shares of one loss",
                "give it a weight of at least 0",
                Fix.set("Give it weight 1", f"{facts.place(edge)}.weight", 1.0),
            )


def students_of_a_teacher_agree(facts: Facts) -> Iterator[Diagnostic]:
    """A reference tells of words at one temperature."""
    for name, _ in facts.of(ReferenceNode):
        students = [full for full in taught_students(facts.spec, name) if full.words != 0]
        heats = list(dict.fromkeys(full.own_temperature for full in students))
        if len(heats) > 1:
            told = " and ".join("that of sampling" if h is None else f"{h:g}" for h in heats)
            yield error(
                "structure.conflict",
                f"nodes.{name}",
                f"learners want what `{name}` says at different temperatures: {told}",
                "set the same `temperature` in their algorithms, or give each a reference of its "
                "own with `model: {type: shared, with: ...}`",
            )


def prompts_belong_to_rollouts(facts: Facts) -> Iterator[Diagnostic]:
    """Prompts of a reference are related to the rollouts that it reads under them."""
    for name, _ in facts.of(ReferenceNode):
        prompts = facts.walk.into(name, "prompts")
        rollouts = facts.walk.into(name, "rollouts")
        if not prompts:
            continue
        if facts.is_connected(name, "pairs"):
            yield error(
                "structure.conflict",
                f"nodes.{name}.prompts",
                f"`{name}` scores pairs, whose sides have their own prompts",
                "give the pairs a reference of their own, or disconnect `prompts`",
            )
        if not rollouts:
            yield error(
                "structure.missing_edge",
                f"nodes.{name}.rollouts",
                f"`{name}` has prompts, but no rollouts to read under them",
                f"connect rollouts to `{name}.rollouts`",
            )
        given = facts.levels_of(prompts)
        for edge in rollouts:
            levels = facts.lineage.edge_levels(edge)
            if given and levels and relate(given, levels) not in RELATED:
                yield error(
                    "lineage.no_common_ancestor",
                    f"nodes.{name}.prompts",
                    f"rows at `{name}.prompts` are neither above nor below the rollouts of "
                    f"`{edge.source}`, so no rollout would have a prompt",
                    "connect a template on the rows from which the rollouts were written, or on "
                    "the rollouts themselves",
                )


def teachers_have_the_same_tokenizer(facts: Facts) -> Iterator[Diagnostic]:
    """A teacher scores token ids, which mean the same text only by one tokenizer."""
    for name, edge in _teachings(facts):
        teacher = edge.source.node
        own = tokenizer_of(facts.spec, name, facts.root)
        other = tokenizer_of(facts.spec, teacher, facts.root)
        if own is None or other is None or own.may_equal(other):
            continue
        yield error(
            "learning.teacher_tokenizer",
            f"nodes.{teacher}.model",
            f"`{teacher}` teaches `{name}` token by token, but they have different tokenizers: "
            f"{other.name} and {own.name}",
            "take a teacher with the student's tokenizer; or let it write texts, and learn those "
            "by `demonstrations`",
        )


def _teachings(facts: Facts) -> Iterator[tuple[str, Edge]]:
    """Each student with the edges of its teachers."""
    for name in facts.learners:
        for edge in facts.walk.into(name, "reference"):
            if facts.spec.graph.teaches(edge):
                yield name, edge


def _is_of(facts: Facts, writer: str, own: frozenset[str]) -> bool:
    """Whether rows born at a node were written by one of these, maybe in an earlier step."""
    return writer in own or facts.walk.kinds.get(writer) == "buffer"
