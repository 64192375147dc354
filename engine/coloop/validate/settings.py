"""Settings without effect, and verifiers whose answers give no score."""

import re
from collections.abc import Iterator

from coloop.spec.adapters import refreshed
from coloop.spec.algorithm import (
    LabelCrossEntropy,
    RewardsAlgorithm,
    algorithm_paths,
    resolve_rewards_algorithm,
)
from coloop.spec.answers import expects_json
from coloop.spec.diagnostics import Diagnostic, Fix, Severity, error
from coloop.spec.model import SnapshotModel
from coloop.spec.nodes import FilterNode, RewardNode, VerifierNode
from coloop.spec.reading import Read
from coloop.spec.reward import ChatSource
from coloop.spec.training import Gather
from coloop.validate.facts import Facts
from coloop.validate.texts import names_in_text, texts_of


def settings_do_something(facts: Facts) -> Iterator[Diagnostic]:
    """`up_to` has `spare` rows, `per` gathered rows, and `credit.rounds` a cycle of rounds."""
    for name, node in facts.nodes.items():
        has_up_to = isinstance(node, FilterNode) and node.up_to is not None
        if has_up_to and not facts.is_connected(name, "spare"):
            yield _idle(f"nodes.{name}.up_to", "nothing is connected at `spare`")
        if getattr(node, "per", None) is not None and not isinstance(node.join, Gather):
            yield _unused(
                f"nodes.{name}.per",
                f"`per: row` needs one number per gathered row, but `{name}` gathers none",
                "remove `per`, or gather rows (`join: {gather: ...}`)",
            )
        rounds = getattr(getattr(node, "credit", None), "rounds", None)
        if rounds is not None and facts.lineage.region_of(name) is None:
            yield _idle(f"nodes.{name}.credit.rounds", f"`{name}` is not part of a cycle of rounds")


def averages_move(facts: Facts) -> Iterator[Diagnostic]:
    """A snapshot with `ema` is refreshed."""
    named = refreshed(facts.spec)
    for name in facts.nodes:
        model = None if name in named else facts.model(name)
        if isinstance(model, SnapshotModel) and model.ema and model.refresh == "never":
            yield _unused(
                f"nodes.{name}.model.ema",
                f"`ema: {model.ema:g}` applies to refreshes, but `{name}` is never refreshed",
                "remove `ema`, or set when it is refreshed: `refresh: {every: 1}`",
            )


def credit_has_rewards(facts: Facts) -> Iterator[Diagnostic]:
    """Settings of `credit` are only set for learners from rewards."""
    for name, node in facts.nodes.items():
        credit, ports = getattr(node, "credit", None), facts.teaching_ports_of(name)
        if credit is None or "rewards" in ports:
            continue
        by = " and ".join(f"`{port}`" for port in sorted(ports))
        learns = f"learns from {by}" if ports else "learns nothing"
        for field, setting in type(credit).model_fields.items():
            if getattr(credit, field) != setting.default:
                yield _unused(
                    f"nodes.{name}.credit.{field}",
                    f"`credit.{field}` applies to rewards, but `{name}` {learns}: it has no effect",
                    f"remove `{field}`, or connect rewards to `{name}`",
                )


def coefficients_move(facts: Facts) -> Iterator[Diagnostic]:
    """A KL coefficient with a `target` starts above 0, because adapting it multiplies it."""
    moved = facts.moved_paths.union(*map(facts.values_in, facts.phases))
    for name in dict.fromkeys(name for name, _ in facts.rewards):
        for port, at, entry in algorithm_paths(facts.spec, name):
            if port != "rewards" or not isinstance(entry, RewardsAlgorithm):
                continue
            kl = resolve_rewards_algorithm(entry).kl
            if kl is None or kl.target is None or kl.coefficient > 0:
                continue
            if f"{at}.kl.coefficient" not in moved:
                yield _unused(
                    f"{at}.kl.coefficient",
                    f"`kl.coefficient: 0` stays 0: `kl.target: {kl.target:g}` multiplies it",
                    "start with a number above 0, such as 0.001, or remove `target`",
                    Fix.remove("Remove `target`", f"{at}.kl.target"),
                )


def labels_begin_with_the_greater(facts: Facts) -> Iterator[Diagnostic]:
    """With two labels a number trains the probability of the first, so that one must be worth
    more; otherwise scores are inverted."""
    for name, node in facts.nodes.items():
        read = getattr(node, "read", None)
        if not isinstance(read, Read) or read.labels is None or read.values is None:
            continue
        is_taught = any(
            isinstance(entry, LabelCrossEntropy) for entry in facts.algorithms(name, "labels")
        )
        worth = [read.values.get(label) for label in read.labels]
        if not is_taught or len(worth) != 2 or worth[0] is None or worth[1] is None:
            continue
        if worth[0] < worth[1]:
            first, second = read.labels
            yield _unused(
                f"nodes.{name}.read.labels",
                f"a label of 1 trains `{first}`, the first of `labels`, but `values` maps it to "
                f"{worth[0]:g}: what is learned would be read the wrong way round",
                f"put `{second}` first",
                Fix.set(f"Put `{second}` first", f"nodes.{name}.read.labels", [second, first]),
            )


def verdicts_can_be_read(facts: Facts) -> Iterator[Diagnostic]:
    """`read` of a generative verifier whose scores are used sets how its text becomes a number."""
    for name, node in facts.nodes.items():
        ports = [port for port in ("scores", "step_scores") if facts.is_used(name, port)]
        problem = None
        if isinstance(node, VerifierNode) and node.method == "generative":
            problem = _unreadable(node) if ports else None
        elif isinstance(node, RewardNode) and isinstance(node.source, ChatSource):
            problem = _unreadable_text(node.read or Read()) if ports else None
        if problem is not None:
            field, message, hint = problem
            yield error(
                "structure.unreadable_verdict",
                f"nodes.{name}.{field}",
                f"`{name}.{ports[0]}` is used, but {message}",
                hint,
            )


def criteria_are_shown(facts: Facts) -> Iterator[Diagnostic]:
    """The template of a judge with a rubric shows what it is asked about."""
    for name, node in facts.nodes.items():
        read = getattr(node, "read", None)
        if not isinstance(node, VerifierNode | RewardNode) or read is None or read.rubric is None:
            continue
        wanted = "criteria" if read.ask == "together" else "criterion"
        snippets = [one for one in texts_of(node) if one.field.startswith("template.")]
        if snippets and not any(wanted in names_in_text(one.content).bare for one in snippets):
            yield error(
                "structure.unshown_criteria",
                f"nodes.{name}.{snippets[-1].field}",
                f"`{name}` has a rubric, but its template does not show `{wanted}`",
                f"add `{{{{ {wanted} }}}}` to the template"
                + (" and `{{ answer_format }}`" if read.ask == "together" else ""),
            )


def _unreadable(node: VerifierNode) -> tuple[str, str, str] | None:
    read = node.read
    by_label = read.score == "probability" or node.rollout is None
    if by_label and len(read.labels or ()) < 2:
        return (
            "read.labels",
            "it reads the probability of label words, but none are set",
            "list the words, the better one first: `labels: [yes, no]`",
        )
    if by_label:
        return None
    return _unreadable_text(read)


def _unreadable_text(read: Read) -> tuple[str, str, str] | None:
    patterns = (read.verdict, read.step_verdicts, read.number, read.numbers)
    if not any(patterns) and not expects_json(read):
        return (
            "read",
            "`read` does not define the score of its text",
            "set `read.verdict` with `values`, `read.number`, or `read.json` of a JSON answer",
        )
    if read.ranking:
        return None
    if read.values is None and (read.verdict or read.step_verdicts):
        return (
            "read.values",
            "its verdict words have no values",
            f"set a value for each word: `values: {_worth(read.step_verdicts, read.verdict)}`",
        )
    return None


def _worth(*patterns: str | None) -> str:
    """Template values for words in `=(yes|no)` patterns, of which the first is better."""
    listed = [re.search(r"\((\w+(?:\|\w+)+)\)", pattern or "") for pattern in patterns]
    words = [match[1].split("|") for match in listed if match] or [["right", "wrong"]]
    worth = {word: int(index == 0) for group in words for index, word in enumerate(group)}
    return f"{{{', '.join(f'{word}: {value}' for word, value in worth.items())}}}"


def _idle(at: str, reason: str) -> Diagnostic:
    field = at.split(".", 2)[2]
    message, hint = f"`{field}` has no effect: {reason}", f"remove `{field}`"
    return _unused(at, message, hint, severity=Severity.WARNING)


def _unused(
    at: str, message: str, hint: str, fix: Fix | None = None, severity: Severity = Severity.ERROR
) -> Diagnostic:
    """`fix`: default: remove the field."""
    fix = fix or Fix.remove(f"Remove {at.split('.', 2)[2]}", at)
    return error("structure.unused_setting", at, message, hint, fix, severity=severity)
