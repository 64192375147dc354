"""Credit: the scores at `rewards` become what the learner's algorithms learn from.

    rows and scores ──> a lesson for each algorithm ──> class weights ──> balance ──> items

Nothing is trained and no weights are touched. A row that its limit cut counts in its group's
baseline; whether it is taught, its writer's `rollout.truncated` says. What lasts beyond a step: the
KL coefficients that adapt, and how often each class has come.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from coloop.recipes.class_weights import Frequencies, class_weights, moved_frequencies
from coloop.recipes.kl_control import KlController
from coloop.roles.credit_items import balanced, items_of
from coloop.roles.credit_rows import ScoredRows, credit_of, own_rows, score_rows
from coloop.roles.lesson import Lesson, lesson_of
from coloop.roles.protocol import Call, Context, Outcome
from coloop.roles.teaching import LEFT_OUT
from coloop.spec.algorithm import ResolvedRewards, node_algorithms, resolve_algorithm
from coloop.spec.homes import rollout_of
from coloop.spec.training import ClassWeights
from coloop.tables import Row
from coloop.tables.table import Table

PORT = "rewards"


class CreditRole:
    """The credit of a node that learns from rewards."""

    def __init__(self, node: str, context: Context) -> None:
        del context
        self._node = node
        self._kl: Mapping[int, KlController] = {}
        """By the place of its algorithm."""
        self._frequencies: Frequencies = {}

    def run(self, call: Call) -> Outcome:
        """What it learns; of a probe's rows it remembers nothing."""
        if not call.is_probe:
            return self._credited(call)
        memory = self.remember()
        try:
            return self._credited(call)
        finally:
            self.recall(memory)

    def _credited(self, call: Call) -> Outcome:
        rows, inputs = own_rows(self._node, call), call.inputs.get(PORT, ())
        own = score_rows(self._node, call.context, rows, inputs)
        lessons = [
            self._lesson(number, settings, call, own)
            for number, settings in enumerate(self._algorithms(call.context))
        ]
        detail: dict[str, Any] = {"rows": len(rows), **_told(lessons)}
        if not any(lesson.rows for lesson in lessons):
            message = f"{self._node}: {_why_none(lessons)}; nothing is learned"
            return Outcome(
                items={PORT: ()},
                outputs={"credited": Table(), "returns": Table()},
                detail=detail,
                alerts=[("learn.no_rows", message)],
            )
        credit = credit_of(self._node, call.context)
        lessons, shares = self._by_class(lessons, credit.class_weights)
        counts = balanced(self._node, call, credit.balance, lessons)
        items = items_of(lessons, counts)
        metrics: dict[str, float] = {**shares, **_left_out(lessons)}
        for lesson in reversed(lessons):  # of what several know, the first algorithm's stands
            metrics |= lesson.output.metrics
        return Outcome(
            items={PORT: items},
            metrics=metrics,
            reasons=_reasons(lessons),
            detail={**detail, "learned": len(items)},
            alerts=[alert for lesson in lessons for alert in lesson.output.alerts],
            outputs={
                "credited": Table(rows=_credited_rows(self._node, lessons[0])),
                "returns": _returns(lessons),
            },
        )

    def _algorithms(self, context: Context) -> list[ResolvedRewards]:
        rollout = rollout_of(context.spec, self._node)
        longest = rollout.max_new_tokens if rollout is not None else None
        return [
            resolve_algorithm(entry, max_new_tokens=longest)
            for entry in node_algorithms(context.spec, self._node)[PORT]
        ]

    def _lesson(
        self, number: int, settings: ResolvedRewards, call: Call, own: ScoredRows
    ) -> Lesson:
        """What one algorithm learns, and where its KL in the reward adapts, that it is told."""
        kl = settings.kl
        if kl is None or kl.into != "reward" or kl.target is None:
            return lesson_of(self._node, settings, call, own)
        controller = replace(self._kl.get(number) or KlController.of(kl))
        settings = controller.applied(settings)
        lesson = lesson_of(self._node, settings, call, own)
        coefficient = controller.coefficient
        if lesson.output.kl is not None:
            controller.observe(lesson.output.kl, kl, samples=len(lesson.rows))
        self._kl = {**self._kl, number: controller}
        metrics = {**lesson.output.metrics, "kl/coefficient": coefficient}
        return replace(lesson, output=replace(lesson.output, metrics=metrics))

    def _by_class(
        self, lessons: list[Lesson], section: ClassWeights | None
    ) -> tuple[list[Lesson], dict[str, float]]:
        """The lessons with the advantages of each row times the weight of its class; and the share
        of each class so far."""
        if section is None:
            return lessons, {}
        rows = {row.id: row for lesson in lessons for row in lesson.taught}
        classes = {name: _class_of(row, section.by) for name, row in rows.items()}
        self._frequencies = moved_frequencies(
            self._frequencies, [*classes.values()], ema=section.ema
        )
        weights = class_weights(self._frequencies, shape=section.shape)
        weight_of = {name: 1.0 if one is None else weights[one] for name, one in classes.items()}
        shares = {f"class/{one:g}": share for one, share in self._frequencies.items()}
        return [lesson.weighted(weight_of) for lesson in lessons], shares

    def remember(self) -> Any:
        return self._kl, self._frequencies

    def recall(self, memory: Any) -> None:
        self._kl, self._frequencies = memory

    def state(self) -> dict[str, Any]:
        return {
            "kl": {str(number): one.state() for number, one in self._kl.items()},
            "frequencies": [[one, share] for one, share in self._frequencies.items()],
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._kl = {
            int(number): KlController.from_state(one) for number, one in state["kl"].items()
        }
        self._frequencies = {float(one): float(share) for one, share in state["frequencies"]}


def _class_of(row: Row, scorer: str) -> float | None:
    """What the scorer says of the row; None where it says nothing."""
    value = row.column(scorer)
    return float(value) if isinstance(value, float | int) else None


LACKING = {
    "without_reference": "log-probs of the reference",
    "without_values": "values of the critic",
    "without_greedy": "a greedy answer to compare with",
}
"""What a row that leaves the update lacks, in words."""


def _why_none(lessons: Sequence[Lesson]) -> str:
    """Why no algorithm has a row to learn."""
    widest = max(lessons, key=lambda lesson: lesson.left_out["kept"])
    lacking = [words for name, words in LACKING.items() if widest.left_out[name]]
    if not lacking:
        return "no row of this step has a score"
    return f"none of the {widest.left_out['kept']} rows that have a score has {lacking[0]}"


def _left_out(lessons: Sequence[Lesson]) -> dict[str, float]:
    """Share of the scored rows that leave the update, of the algorithm that most of them leave."""
    shares = [
        sum(lesson.left_out[name] for name in LACKING) / lesson.left_out["kept"]
        for lesson in lessons
        if lesson.left_out["kept"] and _reads_beside(lesson.settings)
    ]
    return {LEFT_OUT: max(shares)} if shares else {}


def _reasons(lessons: Sequence[Lesson]) -> dict[str, str]:
    """Why rows leave the update, where it is known."""
    known = dict.fromkeys(lesson.reason for lesson in lessons if lesson.reason)
    return {LEFT_OUT: "; ".join(known)} if known else {}


def _reads_beside(settings: ResolvedRewards) -> bool:
    """Whether an algorithm reads of its rows what another node, or a greedy answer, says."""
    return settings.needs_reference or settings.needs_values or settings.needs_greedy


def _told(lessons: Sequence[Lesson]) -> dict[str, Any]:
    """For the step's line in the log, of the algorithm that learns from most rows."""
    widest = max(lessons, key=lambda lesson: len(lesson.rows))
    sizes = Counter(widest.groups).values()
    return {
        **widest.left_out,
        "edges": dict(widest.scored.delivered),
        "groups": len(sizes),
        "group_size": max(sizes, default=0),
        "truncated": list(widest.is_taught).count(False),
        "versions": sorted({row.version for row in widest.rows}),
    }


def _credited_rows(node: str, lesson: Lesson) -> tuple[Row, ...]:
    """The rows with what came out of it, for people to look at."""
    found = []
    output = lesson.output
    for row, reward, advantage in zip(lesson.rows, output.rewards, output.advantages, strict=True):
        columns: dict[str, float | None] = {"reward": reward}
        if isinstance(advantage, float | int):
            columns["advantage"] = float(advantage)
        found.append(row.with_columns(node, columns))
    return tuple(found)


def _returns(lessons: Sequence[Lesson]) -> Table:
    """What critics learn: the returns of the rows that are taught, by the first algorithm that
    reads values."""
    lesson = next((one for one in lessons if one.output.returns is not None), lessons[0])
    found = zip(lesson.rows, lesson.output.returns or [None] * len(lesson.rows), strict=True)
    given = [(row, returns) for row, returns in found if returns is not None]
    return Table(
        rows=tuple(row for row, _ in given),
        values={row.id: returns for row, returns in given},
        values_at={
            ahead: {
                row.id: returns
                for row, returns in zip(lesson.rows, others, strict=True)
                if returns is not None
            }
            for ahead, others in lesson.output.returns_at.items()
        },
    )
