"""What teachers report beside log-probs of tokens: bytes of words, where they are read and where
they are learned."""

from coloop.plan.settings.survey import Survey
from coloop.plan.settings.weights import Weights
from coloop.spec.algorithm import ResolvedDistillation, distillations, taught_students
from coloop.spec.nodes import ReferenceNode

TOP_BYTES = 8.0
"""Of a word among the k most likely: its number and its log-prob."""
HALF_BYTES, SINGLE_BYTES = 2.0, 4.0
COMPARE_BYTES = 20.0
"""Bytes per token and vocabulary entry while distributions are compared: logits, log-probs, shares,
their distance from the teacher, and the gradient."""


def reported_bytes(survey: Survey, node: str) -> float:
    """What a reference reports of words in one step."""
    if not isinstance(survey.spec.nodes[node], ReferenceNode):
        return 0.0
    students = taught_students(survey.spec, node)
    return _of_a_step(survey, node, max((_per_token(survey, node, s) for s in students), default=0))


def received_bytes(survey: Survey, weights: Weights) -> float:
    """What teachers report to a group's learners in one step."""
    spec, total = survey.spec, 0.0
    for student in weights.members:
        edges = spec.graph.edges_into(student, "reference")
        each = [_per_token(survey, student, own) for own in distillations(spec, student)]
        for edge in filter(spec.graph.teaches, edges):
            total += _of_a_step(survey, edge.source.node, max(each, default=0.0))
    return total


def compares_words(survey: Survey, weights: Weights) -> bool:
    students = (own for node in weights.members for own in distillations(survey.spec, node))
    return any(student.words != 0 for student in students)


def _per_token(survey: Survey, node: str, student: ResolvedDistillation) -> float:
    if student.words is not None:
        return TOP_BYTES * student.words
    weights = survey.weights_of(node)
    words = 0 if weights is None else weights.arch.vocab_size
    return words * (HALF_BYTES if student.dtype == "float16" else SINGLE_BYTES)


def _of_a_step(survey: Survey, reference: str, per_token: float) -> float:
    if not per_token:
        return 0.0
    table = survey.counts.arriving(reference, "rollouts").mean
    return table.rows * table.written * per_token
