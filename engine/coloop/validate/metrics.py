"""Names of metrics: what a probe measures, what a learner reports, and what each needs to be
measured."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from coloop.spec.algorithm import (
    DistillationAlgorithm,
    ImplicitPrm,
    PreferenceAlgorithm,
    RewardsAlgorithm,
    Sft,
    ValueLoss,
    reads,
)
from coloop.spec.base import Section
from coloop.spec.diagnostics import Diagnostic, Fix, closest, did_you_mean, error
from coloop.spec.metrics import METRICS, OF_KIND, PROBE_METRICS, described, metric_of
from coloop.spec.nodes import EvaluateNode
from coloop.validate.facts import Facts, a, corrections

LEARNER_METRICS: Final = frozenset({*METRICS, "clip_share"})
"""Metrics of learners; `clip_share` is the language's word for `clip_fraction`."""

OF_WORDS: Final = (RewardsAlgorithm, PreferenceAlgorithm, Sft, ImplicitPrm)
"""Algorithms that train token log-probs."""
WRITTEN_BY: Final[Mapping[str, tuple[type[Section], ...]]] = {
    "entropy": (*OF_WORDS, DistillationAlgorithm),
    **dict.fromkeys(
        (
            *("distillation/kl", "distillation/divergence", "distillation/mass"),
            "distillation/own_mass",
        ),
        (DistillationAlgorithm,),
    ),
    "kl": OF_WORDS,
    "clip_fraction": (RewardsAlgorithm, ValueLoss),
    "clip_share": (RewardsAlgorithm, ValueLoss),
    "ratio/max": (RewardsAlgorithm,),
}
"""By metric, the algorithms that report it; `kl` only with a reference."""
REFERENCES: Final = frozenset({"reference", "prior"})

BY_LABELS: Final = frozenset(
    {
        *("step_f1", "rank_correlation", "label_accuracy", "class_recall", "calibration", "brier"),
        *("agreement", "false_positive_rate", "false_negative_rate"),
    }
)
BY_SELECTORS: Final = frozenset({"best_of", "weighted_majority"})
"""Metrics that need an edge at `labels` or `selectors` of the probe."""
OF_PORTS: Final = frozenset({"loss", "explained_variance"})
OF_PLAYERS: Final = ("win_rate", "elo")
"""Metrics of each side of a comparison."""
SIDES: Final = ("chosen", "rejected")


def probes_measure_what_is_known(facts: Facts) -> Iterator[Diagnostic]:
    """Metrics of a probe exist, and what they compare with is connected."""
    for name, node in facts.of(EvaluateNode):
        if facts.has_broken_input(name):
            continue
        for index, metric in enumerate(node.metrics):
            if metric_of(metric) is None or metric.endswith("@k"):
                yield _unknown(f"nodes.{name}.metrics.{index}", metric)
                continue
            if metric in OF_PORTS and not node.of:
                yield error(
                    "structure.missing_field",
                    f"nodes.{name}.of",
                    f"`{name}` cannot measure `{metric}`: it needs teaching ports, but `of` names "
                    "none",
                    "name some in `of`, e.g. `of: [critic.returns]`",
                )
            word = metric.partition("@")[0]
            wanted, hint = "selectors", "connect the scorer that chooses among the samples"
            if word in BY_LABELS:
                wanted, hint = "labels", "connect the ground truth that scores are compared with"
            needs = word in BY_LABELS | BY_SELECTORS
            if needs and not facts.is_connected(name, wanted):
                yield error(
                    "structure.missing_edge",
                    f"nodes.{name}.{wanted}",
                    f"`{name}` cannot measure `{metric}`: nothing is connected at "
                    f"`{name}.{wanted}`",
                    hint,
                )


def probes_have_something_to_measure(facts: Facts) -> Iterator[Diagnostic]:
    """A probe has scores, rollouts or teaching ports, and rows for the node that it replaces."""
    for name, node in facts.of(EvaluateNode):
        if facts.has_broken_input(name):
            continue
        measured = any(facts.is_connected(name, p) for p in ("scores", "rollouts", "selectors"))
        if not measured and not node.of:
            yield error(
                "structure.missing_edge",
                f"nodes.{name}.scores",
                f"`{name}` has nothing to measure: neither scores nor rollouts are connected",
                "connect a scorer, or name teaching ports in `of`",
            )
        has_rows = facts.is_connected(name, "rows")
        if node.instead_of is not None and not has_rows and not facts.is_connected(name, "pairs"):
            yield error(
                "structure.missing_edge",
                f"nodes.{name}.rows",
                f"`{name}` replaces the rows of `{node.instead_of}`, but nothing is connected at "
                f"`{name}.rows`",
                "connect a held-out dataset",
            )
        elif has_rows and node.instead_of is None and not node.of:
            yield error(
                "structure.missing_field",
                f"nodes.{name}.instead_of",
                f"`{name}` has held-out rows, but `instead_of` does not name the node that they "
                "replace",
                "set `instead_of` to the node whose rows the loop trains on",
            )


def probes_name_teaching_ports(facts: Facts) -> Iterator[Diagnostic]:
    connected = [f"{node}.{port}" for node, port in sorted(facts.teaching_ports)]
    for name, node in facts.of(EvaluateNode):
        for port in node.of:
            learner = port.partition(".")[0]
            if port not in connected and learner in facts.nodes:
                yield error(
                    "learning.no_teaching_port",
                    f"nodes.{name}.of",
                    f"`{name}` reports `{port}`, which is not a connected teaching port",
                    did_you_mean(port, connected),
                )


def probes_stand_behind_what_they_replace(facts: Facts) -> Iterator[Diagnostic]:
    """What a probe measures depends on the node whose rows it replaces."""
    for name, node in facts.of(EvaluateNode):
        if node.instead_of not in facts.nodes:
            continue
        if node.of or not facts.is_connected(name, "scores"):
            continue
        scorers = [edge.source.node for edge in facts.walk.into(name, "scores", "selectors")]
        above = facts.walk.upstream(*scorers)
        is_whole = any(facts.walk.kinds[other] in ("dataset", "buffer") for other in above)
        if is_whole and node.instead_of not in above:
            yield error(
                "structure.probe_aside",
                f"nodes.{name}.instead_of",
                f"`{name}` replaces the rows of `{node.instead_of}`, but nothing that it measures "
                "comes from there",
                "name the node that the scores of the probe come from",
            )


def check_metric(facts: Facts, metric: str, field: str) -> Iterator[Diagnostic]:
    node, _, rest = metric.partition(".")
    section = facts.nodes.get(node)
    if section is None:
        yield error(
            "structure.unknown_node",
            field,
            f"the metric `{metric}` belongs to the node `{node}`, which does not exist",
            did_you_mean(node, facts.nodes),
        )
        return
    known = _reported_by(facts, node)
    if isinstance(section, EvaluateNode) and _is_misspelt_there(section, rest):
        return
    unwritten = _unwritten(facts, node, rest)
    if unwritten is not None:
        yield error(
            "structure.unknown_metric",
            field,
            f"`{node}` reports no metric `{rest}`: {unwritten}",
            f"use another metric, e.g. `{node}.loss` or `{node}.grad_norm`",
        )
        return
    is_of_scorer = node in facts.learners and described(rest) is not None
    if rest not in known and not is_of_scorer:
        yield error(
            "structure.unknown_metric",
            field,
            f"`{node}` reports no metric `{rest}`",
            did_you_mean(rest, known) or f"{a(section.kind)} reports no metrics",
            *(
                Fix.set(f"Change to {node}.{near}", field, f"{node}.{near}")
                for near in closest(rest, known, limit=1)
            ),
        )


def _is_misspelt_there(probe: EvaluateNode, metric: str) -> bool:
    """Whether the probe misspells this metric; then only the probe is reported, not its reader."""
    parts = metric.split(".")
    wrong = [word for word in probe.metrics if metric_of(word) is None]
    return any(near in parts for word in wrong for near in closest(word, PROBE_METRICS, limit=1))


def _unwritten(facts: Facts, name: str, metric: str) -> str | None:
    """Why a learner never reports this metric; None if it may."""
    group = facts.groups.get(name)
    members = group.members if group else (name,)
    entries = [
        entry
        for member in members
        for port in facts.teaching_ports_of(member)
        for entry in facts.algorithms(member, port)
    ]
    if not entries or metric not in WRITTEN_BY:
        return None
    writers = [entry for entry in entries if isinstance(entry, WRITTEN_BY[metric])]
    names = ", ".join(f"`{entry.name}`" for entry in entries)
    if not writers:
        return f"{names} {('does' if len(entries) == 1 else 'do')} not report it"
    # Of a role that learns from scores, both are of the texts that are scored.
    rewarded = [entry for entry in writers if isinstance(entry, RewardsAlgorithm)]
    if metric == "kl" and not any(reads(entry) & REFERENCES for entry in rewarded or writers):
        way = "; set `kl`" if rewarded else ""
        return f"{names} {('uses' if len(entries) == 1 else 'use')} no reference{way}"
    return None


def _reported_by(facts: Facts, name: str) -> list[str]:
    node = facts.nodes[name]
    if not isinstance(node, EvaluateNode):
        learns = name in facts.learners or name in facts.groups
        return sorted(LEARNER_METRICS) if learns else [*OF_KIND.get(node.kind, ())]
    scorers = {edge.source.node for edge in facts.walk.into(name, "scores")}
    scorers |= {
        scorer
        for edge in facts.walk.into(name, "scores")
        for names in facts.lineage.names.of_edge(edge).values()
        for scorer in names.scores
    }
    metrics = [*node.metrics, *_parts(facts, node.metrics)]
    ports = [port for port in node.of if "." in port]
    return [*metrics, *(f"{s}.{m}" for s in (*sorted(scorers), *ports) for m in metrics)]


def _parts(facts: Facts, metrics: Sequence[str]) -> Iterator[str]:
    """Names of metrics per class, and per player of a comparison."""
    if "class_recall" in metrics:
        yield from ("class_recall.right", "class_recall.wrong")
    players = [*SIDES, *(name for name, node in facts.nodes.items() if hasattr(node, "rollout"))]
    for metric in OF_PLAYERS:
        if metric in metrics:
            yield from (f"{metric}.{player}" for player in players)


def _unknown(at: str, metric: str) -> Diagnostic:
    known = [word.replace("@k", "@8") for word in PROBE_METRICS]
    hint = did_you_mean(metric, known)
    if f"{metric}@k" in PROBE_METRICS:
        hint = f"add the number of samples: `{metric}@8`"
    message = f"there is no metric `{metric}`"
    return error("structure.unknown_metric", at, message, hint, *corrections(at, metric, known))
