"""What scorers of each way of judging are not asked: inputs that mean nothing to them, steps that
they do not tell apart, labels that nobody says."""

from collections.abc import Iterator
from typing import Final

from coloop.plan.refusal import refusal
from coloop.spec.algorithm import LabelCrossEntropy, node_algorithms
from coloop.spec.diagnostics import Diagnostic
from coloop.spec.graph import LoopSpec
from coloop.spec.heads import head_of, label_words
from coloop.spec.nodes import RewardNode, VerifierNode

TWO: Final = 2


def check_judges(spec: LoopSpec) -> Iterator[Diagnostic]:
    """Findings about scorers that do not write."""
    for name, node in spec.nodes.items():
        if isinstance(node, VerifierNode) and node.method != "generative":
            yield from _check_per(name, node)
            yield from _check_inputs(spec, name, node)
            if node.method == "discriminative":
                yield from _check_classifier(spec, name, node)
            if node.method == "formal" and spec.graph.edges_out_of(name, "step_scores"):
                what, hint = (
                    ("`step_scores` of a formal checker, which grades whole texts"),
                    "use `scores`",
                )
                yield _refused(name, "method", what, hint)
            if node.method == "rule" and node.read.granularity == "token":
                yield _refused(name, "read.granularity", "a rule that grades tokens", "use `step`")
        if isinstance(node, RewardNode):
            yield from _check_per(name, node)
        yield from _check_choices(spec, name)


def _refused(node: str, field: str, what: str, hint: str) -> Diagnostic:
    return refusal(f"{what} (node `{node}`)", node=node, field=field, hint=hint)


def _check_per(name: str, node: RewardNode | VerifierNode) -> Iterator[Diagnostic]:
    """Who scores each row anyway, or one text alone."""
    source = node.source.type if isinstance(node, RewardNode) else None
    if node.per is not None and source not in ("python", "remote"):
        what = "`per` of a scorer that reads one text at a time"
        hint = (
            "remove `join` and `per`: each row is scored; Python and judges that generate can "
            "compare rows"
        )
        yield _refused(name, "per", what, hint)


def _check_inputs(spec: LoopSpec, name: str, node: VerifierNode) -> Iterator[Diagnostic]:
    compares = bool(spec.graph.edges_into(name, "comparisons"))
    if compares and (node.method != "discriminative" or node.read.granularity != "sequence"):
        what = f"comparing pairs with a verifier of method {node.method}"
        hint = "score single rows, or compare with a reward model or a judge that generates"
        yield _refused(name, "method", what, hint)
    if node.template is not None and node.method == "implicit_prm":
        what = "a template of an implicit PRM, which scores the tokens of the completion itself"
        yield _refused(name, "template", what, "remove it")


def _check_classifier(spec: LoopSpec, name: str, node: VerifierNode) -> Iterator[Diagnostic]:
    by_step = node.read.granularity != "sequence"
    if by_step and (node.template is not None or node.read.labels is not None):
        what = (
            "scores of steps with a template or `read.labels`, where the tokens of each step are "
            "not known"
        )
        hint = "remove `template` and `read.labels`, or set `read.granularity: sequence`"
        yield _refused(name, "read.granularity", what, hint)
    if head_of(node) == "words" and node.template is None:
        what = "`read.labels` without a template that asks for them"
        yield _refused(name, "template", what, "set the question: `template: {text: ...}`")


def _check_choices(spec: LoopSpec, name: str) -> Iterator[Diagnostic]:
    for port, entries in node_algorithms(spec, name).items():
        if not any(isinstance(entry, LabelCrossEntropy) for entry in entries):
            continue
        node, field = spec.nodes[name], f"algorithm.{port}"
        words = label_words(spec, name) or ()
        if len(words) < TWO or (port == "pairs" and len(words) != TWO):
            what = f"`label_ce` at `{port}` with {len(words) or 'no'} labels"
            hint = "set two: `read: {labels: [Yes, No]}`, the first for right, or for `a`"
            yield _refused(name, field, what, hint)
        for entry in entries:
            if isinstance(entry, LabelCrossEntropy) and entry.labels not in (None, words):
                what = (
                    f"`label_ce` with the labels {', '.join(entry.labels or ())}, where the scorer "
                    f"reads {', '.join(words)}"
                )
                hint = "remove `labels` from the algorithm: it learns those of `read.labels`"
                yield _refused(name, field, what, hint)
        if len(entries) > 1:
            what = f"`label_ce` together with another algorithm at `{port}`"
            yield _refused(name, field, what, "give each its own port or node")
        if head_of(node) == "words" and getattr(node, "template", None) is None:
            what = "`label_ce` without a template that asks for its labels"
            yield _refused(name, "template", what, "set the question: `template: {text: ...}`")
