"""Metrics of an evaluation, as pure functions of scores and answers.

A group has the samples of one problem. A score of None means "not graded" and is left out. A metric
without anything to measure is None, never 0.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from statistics import StatisticsError, correlation, fmean
from typing import Final

from coloop.data.contests import Game, elo_ratings, win_rates, winner

Scores = Sequence[float | None]
Steps = Mapping[int, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The samples of one problem, in the order in which they were drawn."""

    scores: Scores = ()
    answers: Sequence[str] = ()
    """Final answer of each sample, for votes."""
    selectors: Scores = ()
    """Score of each sample by which one is chosen, such as a verifier's."""
    labels: Scores = ()
    """Ground truth for `scores`, per sample."""
    lengths: Sequence[int] = ()
    leads: Sequence[float] = ()
    """Per judged pair: score of `chosen` minus score of `rejected`."""
    orders: Sequence[tuple[float, float]] = ()
    """Per pair judged in both orders: the lead in each order."""
    steps: Sequence[tuple[Steps, Steps]] = ()
    """Per text judged step by step: predicted and true labels by step."""
    games: Sequence[Game] = ()


def mean_of(values: Sequence[float]) -> float | None:
    """Mean; None for no values."""
    return fmean(values) if values else None


def _graded(scores: Scores) -> list[float]:
    return [score for score in scores if score is not None]


def accuracy(groups: Sequence[Group], *, right_at: float = 1.0) -> float | None:
    """Share of graded samples that score at least `right_at`."""
    scores = [score for group in groups for score in _graded(group.scores)]
    return mean_of([float(score >= right_at) for score in scores])


def score(groups: Sequence[Group]) -> float | None:
    return mean_of([score for group in groups for score in _graded(group.scores)])


def tokens(groups: Sequence[Group]) -> float | None:
    return mean_of([float(length) for group in groups for length in group.lengths])


def pass_at(samples: int, right: int, k: int) -> float:
    """1 - C(n - c, k) / C(n, k): probability that k of n samples, c of them right, include a right
    one (arXiv 2107.03374)."""
    if k > samples:
        raise ValueError(f"pass@{k} needs at least {k} samples, found {samples}")
    return 1.0 - math.comb(samples - right, k) / math.comb(samples, k)


def pass_at_k(groups: Sequence[Group], k: int, *, right_at: float = 1.0) -> float | None:
    """Mean unbiased pass@k over the problems with at least k graded samples."""
    values = []
    for group in groups:
        scores = _graded(group.scores)
        if len(scores) >= k:
            values.append(pass_at(len(scores), sum(s >= right_at for s in scores), k))
    return mean_of(values)


def _chosen(
    groups: Sequence[Group], k: int, choose: Callable[[Group, int], int | None], right_at: float
) -> float | None:
    """Share of problems whose chosen sample is right, among those where it is graded."""
    values = []
    for group in groups:
        sample = choose(group, min(k, len(group.scores)))
        grade = None if sample is None else group.scores[sample]
        if grade is not None:
            values.append(float(grade >= right_at))
    return mean_of(values)


def majority_at_k(groups: Sequence[Group], k: int, *, right_at: float = 1.0) -> float | None:
    """Share of problems whose most frequent answer among k is right; ties go to the first."""
    return _chosen(groups, k, lambda group, n: winner(group.answers, [1.0] * n), right_at)


def weighted_majority_at_k(
    groups: Sequence[Group], k: int, *, right_at: float = 1.0
) -> float | None:
    """`majority_at_k` with votes weighted by selector scores; None counts as 0."""

    def choose(group: Group, n: int) -> int | None:
        return winner(group.answers, [weight or 0.0 for weight in group.selectors[:n]])

    return _chosen(groups, k, choose, right_at)


def best_of_k(groups: Sequence[Group], k: int, *, right_at: float = 1.0) -> float | None:
    """Share of problems where the sample with the highest selector score among k is right."""

    def choose(group: Group, n: int) -> int | None:
        scored = [(s, -sample) for sample, s in enumerate(group.selectors[:n]) if s is not None]
        return -max(scored)[1] if scored else None

    return _chosen(groups, k, choose, right_at)


def pair_accuracy(groups: Sequence[Group]) -> float | None:
    """How often the better side has the higher score: of judged pairs if there are any, else of all
    pairs of samples of a problem with different labels. Ties count half."""
    leads = [lead for group in groups for lead in group.leads]
    if leads:
        return preferred(leads, middle=0.0)
    values = []
    for group in groups:
        for (s, label), (other, other_label) in combinations(_labelled([group]), 2):
            if label != other_label:
                values.append(_agree(s - other, label - other_label))
    return mean_of(values)


def _agree(difference: float, truth: float) -> float:
    if difference == 0:
        return 0.5
    return float((difference > 0) == (truth > 0))


def preferred(values: Scores, *, middle: float = 0.5) -> float | None:
    """Share of pairs whose score favours `chosen`, above `middle`; one at it counts half."""
    return mean_of([_agree(value - middle, 1.0) for value in _graded(values)])


def swap_consistency(groups: Sequence[Group]) -> float | None:
    """Share of pairs with the same verdict in both orders; a tie is a verdict of its own."""
    orders = [order for group in groups for order in group.orders]
    return mean_of([float(_side(lead) == _side(swapped)) for lead, swapped in orders])


def _side(lead: float) -> int:
    return (lead > 0) - (lead < 0)


def step_f1(groups: Sequence[Group], *, right_at: float = 1.0) -> float | None:
    """F1 of finding wrong steps; a step without a verdict counts as called right."""
    hits = falsely = missed = 0
    for judged, truth in (steps for group in groups for steps in group.steps):
        for step, label in truth.items():
            is_wrong, is_called_wrong = label < right_at, judged.get(step, right_at) < right_at
            hits += is_wrong and is_called_wrong
            falsely += is_called_wrong and not is_wrong
            missed += is_wrong and not is_called_wrong
    whole = 2 * hits + falsely + missed
    return 2 * hits / whole if whole else None


def calibration(groups: Sequence[Group], *, bins: int = 10) -> float | None:
    """Expected calibration error of scores as probabilities of the labels, over bins of equal
    width; None if a score is not a probability."""
    filled: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for s, label in _as_chances(groups):
        filled[min(bins - 1, int(s * bins))].append((s, label))
    count = sum(map(len, filled.values()))
    if not count:
        return None
    gaps = (
        len(pairs) * abs(fmean(s for s, _ in pairs) - fmean(label for _, label in pairs))
        for pairs in filled.values()
    )
    return sum(gaps) / count


def brier(groups: Sequence[Group]) -> float | None:
    """Mean squared difference of scores, as probabilities, and labels (Brier, 1950); None if a
    score is not a probability."""
    return mean_of([(s - label) ** 2 for s, label in _as_chances(groups)])


def _as_chances(groups: Sequence[Group]) -> list[tuple[float, float]]:
    """Pairs of score and label; empty if a score is not between 0 and 1."""
    pairs = _labelled(groups)
    return pairs if all(0 <= s <= 1 for s, _ in pairs) else []


def _labelled(groups: Sequence[Group]) -> list[tuple[float, float]]:
    return [
        (s, label)
        for group in groups
        for s, label in zip(group.scores, group.labels, strict=False)
        if s is not None and label is not None
    ]


def class_recall(groups: Sequence[Group], *, right_at: float = 1.0) -> dict[str, float]:
    """Recall of scores against labels: of `right` and of `wrong` samples, if there are any."""
    recalls: dict[str, float] = {}
    for name, wanted in (("right", True), ("wrong", False)):
        of_class = [s for s, label in _labelled(groups) if (label >= right_at) is wanted]
        if of_class:
            recalls[name] = fmean((s >= right_at) is wanted for s in of_class)
    return recalls


def false_positive_rate(groups: Sequence[Group], *, right_at: float = 1.0) -> float | None:
    """Share of samples with a wrong label whose score is right."""
    recall = class_recall(groups, right_at=right_at).get("wrong")
    return None if recall is None else 1.0 - recall


def false_negative_rate(groups: Sequence[Group], *, right_at: float = 1.0) -> float | None:
    """Share of samples with a right label whose score is wrong."""
    recall = class_recall(groups, right_at=right_at).get("right")
    return None if recall is None else 1.0 - recall


def agreement(groups: Sequence[Group], *, right_at: float = 1.0) -> float | None:
    """Share of samples whose score and label are both right or both wrong."""
    pairs = _labelled(groups)
    return mean_of([float((s >= right_at) is (label >= right_at)) for s, label in pairs])


def rank_correlation(groups: Sequence[Group]) -> float | None:
    """Spearman's correlation of scores and labels over all samples."""
    pairs = _labelled(groups)
    try:
        return correlation(_ranks([s for s, _ in pairs]), _ranks([label for _, label in pairs]))
    except StatisticsError:  # fewer than two samples, or all of them equal
        return None


def _ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1; ties share their mean rank."""
    first: dict[float, int] = {}
    for rank, value in enumerate(sorted(values), start=1):
        first.setdefault(value, rank)
    count = Counter(values)
    return [first[value] + (count[value] - 1) / 2 for value in values]


def majority_ratio(groups: Sequence[Group]) -> float | None:
    """Share of samples with the most frequent answer, averaged over problems."""
    shares = []
    for group in groups:
        readable = [answer for answer in group.answers if answer]
        if readable:
            shares.append(Counter(readable).most_common(1)[0][1] / len(group.answers))
    return mean_of(shares)


def label_accuracy(groups: Sequence[Group], *, right_at: float = 1.0) -> float | None:
    """Share of problems whose most frequent answer has a right label."""
    values = []
    for group in groups:
        sample = winner(group.answers, [1.0] * len(group.answers))
        label = None if sample is None else next(iter(group.labels[sample : sample + 1]), None)
        if label is not None:
            values.append(float(label >= right_at))
    return mean_of(values)


AT_K: Final = re.compile(r"^(?P<name>pass|majority|best_of|weighted_majority)@(?P<k>[1-9]\d*)$")

WITH_RIGHT_AT: Final[Mapping[str, Callable[..., float | None]]] = {
    "pass": pass_at_k,
    "majority": majority_at_k,
    "best_of": best_of_k,
    "weighted_majority": weighted_majority_at_k,
}

Parts = dict[str, float]

BY_RIGHT_AT: Final[Mapping[str, Callable[..., float | Parts | None]]] = {
    "accuracy": accuracy,
    "agreement": agreement,
    "class_recall": class_recall,
    "false_positive_rate": false_positive_rate,
    "false_negative_rate": false_negative_rate,
    "step_f1": step_f1,
    "label_accuracy": label_accuracy,
}

OF_GROUPS: Final[Mapping[str, Callable[[Sequence[Group]], float | Parts | None]]] = {
    "score": score,
    "tokens": tokens,
    "pair_accuracy": pair_accuracy,
    "swap_consistency": swap_consistency,
    "calibration": calibration,
    "brier": brier,
    "rank_correlation": rank_correlation,
    "majority_ratio": majority_ratio,
    "win_rate": lambda groups: win_rates(_games(groups)),
    "elo": lambda groups: elo_ratings(_games(groups)),
}

LOWEST: Final = frozenset({"class_recall"})
"""Metrics with parts whose main value is the lowest part; for others it is the first part."""


def _games(groups: Sequence[Group]) -> list[Game]:
    return [game for group in groups for game in group.games]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    name: str
    k: int | None = None


def read_metric(name: str) -> Metric:
    """`pass@8` as ("pass", 8); other names as they are."""
    at_k = AT_K.match(name)
    return Metric(name=at_k["name"], k=int(at_k["k"])) if at_k else Metric(name=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    values: Mapping[str, float] = field(default_factory=dict)
    missing: tuple[str, ...] = ()


def measure(names: Sequence[str], groups: Sequence[Group], *, right_at: float = 1.0) -> Measured:
    values: dict[str, float] = {}
    missing: list[str] = []
    for name in names:
        parts = _measured(name, groups, right_at)
        values.update(parts)
        if not parts:
            missing.append(name)
    return Measured(values=values, missing=tuple(missing))


def _measured(name: str, groups: Sequence[Group], right_at: float) -> Parts:
    metric = read_metric(name)
    value: float | Parts | None
    if metric.k is not None:
        value = WITH_RIGHT_AT[metric.name](groups, metric.k, right_at=right_at)
    elif name in BY_RIGHT_AT:
        value = BY_RIGHT_AT[name](groups, right_at=right_at)
    else:
        value = OF_GROUPS[name](groups) if name in OF_GROUPS else None
    if isinstance(value, dict):
        parts = list(value.values())
        whole = {name: min(parts) if name in LOWEST else parts[0]} if parts else {}
        return {**whole, **{f"{name}.{part}": number for part, number in value.items()}}
    return {} if value is None else {name: value}
