"""How far the estimate is from published measurements, by quantity, tier and source.

Each measured job is a loop in the language of loops (`tests/bench/published`) whose estimate is
compared with the page. Formulas are of what is computed and kept. No number is chosen for one row;
some are chosen by many of these rows, and say so where they stand: shares of the peak that products
and attention reach, floors of engines, bytes of vLLM's sampler, lengths of completions, the printed
bands. Facts that trainers differ by are in `plan/settings/implementations.py`, with their sources;
some are read off the measurements of that trainer. Tables that leave a source out show what is
lost.
"""

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tests.bench.published import memory, speed, speed_tables
from tests.bench.published.left_out import left_out_table
from tests.bench.published.row import NotExpressible, Published
from tests.bench.results import Goal, Result, Table

from coloop.plan.cost.bands import MEMORY as MEMORY_BAND

WORST = 10
MOST_UNSAID = 0.10
TRUE_OR_FALSE = ("fits", "oom")

_OLD_LOSS = "transformers before 4.45: its loss holds 14.7 bytes a logit, not 12"
_TWO_INSTANTS = "the residual is float32 for the layers, as estimated, but not yet at the loss"
_ADAPTED_EXPERTS = "adapters on 128 experts: the outputs of the adapters are not counted"
_LATER = "a later version: the same job with an earlier one took 74.6 GiB (M0093)"
_SMALL_HEAD = "not known; the same job on 2 to 8 GPUs is within 7 %"
WHY: Mapping[str, str] = {
    "M0052": _SMALL_HEAD,
    "M0054": _SMALL_HEAD,
    "M0055": _SMALL_HEAD,
    "N053": _SMALL_HEAD,
    "N055": _SMALL_HEAD,
    "M0066": _ADAPTED_EXPERTS,
    "N005": _ADAPTED_EXPERTS,
    "M0204": _OLD_LOSS,
    "M0206": _OLD_LOSS,
    "M0239": _TWO_INSTANTS,
    "M0240": _TWO_INSTANTS,
    "M0257": _TWO_INSTANTS,
    "M0258": _TWO_INSTANTS,
    "M0466": "kernels of int8 products want about 2 GiB of workspace more",
    "M0480": "kernels of experts in fp8 want about 2 GiB of workspace more",
    "M0487": "a checkpoint whose attention is in 16 bits, not in fp8",
    "M0489": "an early vLLM, which measures its workspace with 32,768 tokens at once",
    "M0494": "2.4 GiB before a commit of NeMo-RL, as estimated, and 7.2 after it",
    "M0499": "a small rest: padded weights of 64.4, not 60.7 GiB, and workspace of 7.4, not 5.9",
    "M0512": "a vision encoder, and a sampler with 2.1 GiB where other models have 5",
    "N011": _LATER,
    "N015": _LATER,
}
"""By row, why its estimate is far off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A row beside its estimate."""

    row: Published
    said: float
    """The estimate, in the row's unit; of `fits` and `oom` GiB left."""

    @property
    def error(self) -> float:
        """Estimated / measured - 1."""
        return self.said / float(self.row.value) - 1

    @property
    def is_right(self) -> bool:
        return (self.said >= 0) == (self.row.quantity == "fits")


def run() -> Result:
    if not memory.is_here():
        return Result(title=TITLE, text="The tables of measurements are not here.")
    said, unsaid = memory.published()
    compared = compare(said, memory.predict)
    oracle = compare(memory.tracked(), memory.predict)
    speeds, untold = speed_tables.compare_all()
    _, unsaid_speeds = speed.published()
    return Result(
        title=TITLE,
        tables=(
            *memory_tables(compared, unsaid),
            errors_table("Peaks of training by torch's own tracker.", oracle, MEMORY_BAND),
            *speed_tables.tables(speeds, untold, unsaid_speeds),
        ),
        goals=(
            *memory_goals(compared, said, unsaid),
            oracle_goal(oracle),
            *speed_tables.goals(speeds, untold, unsaid_speeds),
        ),
        data={
            **{one.row.id: one.said for one in compared},
            **{one.row.id: one.predicted for one in speeds},
        },
    )


TITLE = "Estimate compared with published measurements"


def compare(
    rows: Iterable[Published], predict: Callable[[Published], float | None]
) -> list[Compared]:
    """Rows with an estimate; those of which the estimate knows nothing are left out."""
    pairs = ((row, predict(row)) for row in rows)
    return [Compared(row=row, said=said) for row, said in pairs if said is not None]


def memory_tables(
    compared: Sequence[Compared], unsaid: Sequence[NotExpressible]
) -> Iterable[Table]:
    numbers = [one for one in compared if one.row.quantity not in TRUE_OR_FALSE]
    yield errors_table(
        "Memory, errors by quantity, tier and source (A: exact and measured by a machine; B: "
        "rounded, or partly unsaid; C: a claim). Band: share of the rows with measured / "
        f"estimated in {MEMORY_BAND[0]:g} to {MEMORY_BAND[1]:g}.",
        numbers,
        MEMORY_BAND,
    )
    yield Table(
        title="Memory, what fits and what does not.",
        head=("quantity", "tier", "source", "rows", "right"),
        rows=tuple(
            (quantity, tier, source, str(len(group)), str(sum(one.is_right for one in group)))
            for (quantity, tier, source), group in _grouped(compared)
            if quantity in TRUE_OR_FALSE
        ),
    )
    peaks: dict[str, list[float]] = defaultdict(list)
    for one in numbers:
        if one.row.quantity == "peak_gib" and one.row.tier in ("A", "B"):
            peaks[one.row.source].append(math.log1p(one.error))
    yield left_out_table("Peaks of tiers A and B, each source by what the others fit.", peaks)
    exact = [one for one in numbers if one.row.tier == "A"]
    yield worst_table("Memory, the worst rows of tier A.", exact)
    yield unsaid_table("Memory, rows that cannot be said as loops.", unsaid)


def memory_goals(
    compared: Sequence[Compared], said: Sequence[Published], unsaid: Sequence[NotExpressible]
) -> Iterable[Goal]:
    peaks = [one for one in compared if one.row.quantity == "peak_gib" and one.row.tier == "A"]
    errors = sorted(abs(one.error) for one in peaks)
    median, most = statistics.median(errors), errors[int(0.9 * len(errors))]
    yield Goal(
        wanted="peaks of tier A within 5 % at the median and 15 % at the 90th percentile",
        found=f"{100 * median:.1f} and {100 * most:.1f} % of {len(errors)}",
        is_reached=median <= 0.05 and most <= 0.15,
    )
    held = _held(peaks, MEMORY_BAND)
    yield Goal(
        wanted="the printed band of memory holds 90 % of them",
        found=f"{100 * held:.0f} %",
        is_reached=held >= 0.9,
    )
    share = len(unsaid) / (len(said) + len(unsaid))
    yield Goal(
        wanted=f"at most {100 * MOST_UNSAID:.0f} % of the rows of memory cannot be said",
        found=f"{100 * share:.1f} % of {len(said) + len(unsaid)}",
        is_reached=share <= MOST_UNSAID,
    )


def oracle_goal(oracle: Sequence[Compared]) -> Goal:
    errors = sorted(abs(one.error) for one in oracle)
    median, most = statistics.median(errors), errors[-1]
    return Goal(
        wanted="peaks by torch's own tracker within 2 % at the median and 5 % at most",
        found=f"{100 * median:.1f} and {100 * most:.1f} % of {len(errors)}",
        is_reached=median <= 0.02 and most <= 0.05,
    )


def errors_table(title: str, compared: Sequence[Compared], band: tuple[float, float]) -> Table:
    """Median and 90th percentile of |estimated / measured - 1| by quantity, tier and source."""
    rows = []
    for (quantity, tier, source), group in _grouped(compared):
        errors = sorted(abs(one.error) for one in group)
        bias = statistics.median(one.error for one in group)
        rows.append(
            (
                quantity,
                tier,
                source,
                str(len(group)),
                f"{100 * statistics.median(errors):.1f} %",
                f"{100 * errors[min(int(0.9 * len(errors)), len(errors) - 1)]:.1f} %",
                f"{100 * bias:+.1f} %",
                f"{100 * _held(group, band):.0f} %",
            )
        )
    head = ("quantity", "tier", "source", "rows", "median", "90th", "bias", "band")
    return Table(title=title, head=head, rows=tuple(rows))


def worst_table(title: str, compared: Sequence[Compared]) -> Table:
    worst = sorted(compared, key=lambda one: -abs(one.error))[:WORST]
    return Table(
        title=title,
        head=("row", "source", "measured", "estimated", "error", "why"),
        rows=tuple(
            (
                one.row.id,
                one.row.source,
                f"{float(one.row.value):.4g}",
                f"{one.said:.4g}",
                f"{100 * one.error:+.0f} %",
                WHY.get(one.row.id, "not known"),
            )
            for one in worst
        ),
    )


def unsaid_table(title: str, unsaid: Sequence[NotExpressible]) -> Table:
    counts = Counter(one.why for one in unsaid)
    return Table(
        title=title,
        head=("rows", "what is missing"),
        rows=tuple((str(count), why) for why, count in counts.most_common()),
    )


def _grouped(
    compared: Sequence[Compared],
) -> list[tuple[tuple[str, str, str], list[Compared]]]:
    groups: dict[tuple[str, str, str], list[Compared]] = defaultdict(list)
    for one in compared:
        groups[one.row.quantity, one.row.tier, one.row.source].append(one)
    return sorted(groups.items())


def _held(compared: Sequence[Compared], band: tuple[float, float]) -> float:
    """Share of the rows with measured / estimated within the band."""
    ratios = [float(one.row.value) / one.said if one.said else 0.0 for one in compared]
    return sum(band[0] <= ratio <= band[1] for ratio in ratios) / len(ratios)
