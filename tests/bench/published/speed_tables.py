"""Tables of the errors of predicted speed, by quantity and source."""

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from tests.bench.published import speed
from tests.bench.published.left_out import left_out_table
from tests.bench.published.row import NotExpressible
from tests.bench.published.speed import Compared
from tests.bench.results import Goal, Table

WORST = 10
MOST_UNSAID = 0.10

WHY: Mapping[str, str] = {
    "T0417": "transformers 4.51 runs all 128 experts one after another",
    "T0543": "Llama-4's experts one after another, unpacked from nf4 each",
    "T0596": "an engine without CUDA graphs and float32 training, which the page does not say",
    "T0617": "rows of eight steps are generated at once; here a pool generates one step at a time",
    "T0227": "the step writes the weights to a file system for the engine",
    "T0237": "FlashAttention-2 and an early mixture of experts on a B200",
    "T0240": "FlashAttention-2 and an early mixture of experts on a B200",
    "T0242": "FlashAttention-2 on a B200",
    "T0245": "FlashAttention-2 on a B200; the step writes the weights to a file system",
    "N012": "FlashAttention-2; the step writes 61 GB of weights to a file system",
    "N014": "FlashAttention-2; the step writes 61 GB of weights to a file system",
    "N016": "the step writes 61 GB of weights to a file system for the engine",
    "N018": "the step writes 61 GB of weights to a file system for the engine",
    "N024": "FlashAttention-2 on a B200; the step writes the weights to a file system",
    "N141": "recomputation that the page does not say; half as fast as an older version (T0320)",
    "N147": "weights of 1.3 TB are swapped and resharded for each step",
    "N149": "weights of 1.3 TB are swapped and resharded for each step",
    "N150": "weights of 1.3 TB are swapped and resharded for each step",
    "N151": "weights of 1.3 TB are resharded for each step",
    "N154": "the asynchronous run is slower than the one in turn, for a reason that is not said",
}
"""By row, why its prediction is far off."""
KINDS = {
    "gen_max_throughput": "saturated generation",
    "decode_b1": "generation of one row",
    "rl_step": "RL step",
    "weight_sync": "weight sync",
}


def compare_all() -> tuple[list[Compared], list[Compared]]:
    """All rows, and the RL steps without the lengths that their pages tell."""
    said, _ = speed.published()
    rows = [speed.compare(row) for row in said]
    steps = [one.row for one in rows if one.row.quantity == "step_s"]
    return rows, [speed.compare(speed.without_lengths(row)) for row in steps]


def tables(
    rows: Sequence[Compared], untold: Sequence[Compared], unsaid: Sequence[NotExpressible]
) -> Iterable[Table]:
    yield _errors(
        "Speed, errors by quantity and source: |log(estimated / measured)|. Band: share of the "
        "rows within the band that is printed for their quantity.",
        rows,
    )
    yield _errors("RL steps without the lengths that their pages tell.", untold)
    yield from _left_out(rows)
    yield _bottlenecks(rows)
    yield _overlaps()
    yield _worst(rows)
    counts = Counter(one.why for one in unsaid)
    yield Table(
        title="Speed, rows that cannot be said as loops.",
        head=("rows", "what is missing"),
        rows=tuple((str(count), why) for why, count in counts.most_common()),
    )


def goals(
    rows: Sequence[Compared], untold: Sequence[Compared], unsaid: Sequence[NotExpressible]
) -> Iterable[Goal]:
    wanted = (
        ("training", 0.15),
        ("saturated generation", 0.25),
        ("RL step", 0.4),
        ("weight sync", 0.4),
    )
    for kind, most in wanted:
        logs = [abs(one.log) for one in rows if _kind(one) == kind]
        median = statistics.median(logs)
        yield Goal(
            wanted=f"{kind}: median |log| of at most {most:g}",
            found=f"{median:.3f} of {len(logs)}",
            is_reached=median <= most,
        )
    told = [one for one in rows if one.row.told.get("longest")]
    right = sum(one.stage == one.row.told["longest"] for one in told)
    yield Goal(
        wanted="the right bottleneck in 85 % of the runs that tell their stages",
        found=f"{right} of {len(told)}",
        is_reached=right >= 0.85 * len(told),
    )
    signs = list(speed.signs())
    agree = sum((measured > 0) == (predicted > 0) for _, measured, predicted in signs)
    yield Goal(
        wanted="whether overlap is faster, in all pairs of runs",
        found=f"{agree} of {len(signs)}",
        is_reached=agree == len(signs),
    )
    held = [(kind, _held(group)) for (kind, _), group in _grouped([*rows], by_source=False)]
    held.append(("RL step without lengths", _held(untold)))
    yield Goal(
        wanted="the printed bands hold 90 % of each quantity",
        found=", ".join(f"{kind} {100 * share:.0f} %" for kind, share in held),
        is_reached=all(share >= 0.9 for _, share in held),
    )
    share = len(unsaid) / (len(rows) + len(unsaid))
    yield Goal(
        wanted=f"at most {100 * MOST_UNSAID:.0f} % of the rows of speed cannot be said",
        found=f"{100 * share:.1f} % of {len(rows) + len(unsaid)}",
        is_reached=share <= MOST_UNSAID,
    )


def _kind(one: Compared) -> str:
    return KINDS.get(one.row.told["task"], "training")


def _grouped(
    rows: Iterable[Compared], *, by_source: bool = True
) -> list[tuple[tuple[str, str], list[Compared]]]:
    groups: dict[tuple[str, str], list[Compared]] = defaultdict(list)
    for one in rows:
        groups[_kind(one), one.row.source if by_source else ""].append(one)
    return sorted(groups.items())


def _held(rows: Sequence[Compared]) -> float:
    return sum(one.is_within for one in rows) / len(rows)


def _errors(title: str, rows: Sequence[Compared]) -> Table:
    lines = []
    every = [((kind, "all"), group) for (kind, _), group in _grouped(rows, by_source=False)]
    for (kind, source), group in sorted([*every, *_grouped(rows)]):
        logs = sorted(abs(one.log) for one in group)
        lines.append(
            (
                kind,
                source,
                str(len(group)),
                f"{statistics.median(logs):.3f}",
                f"{logs[min(int(0.9 * len(logs)), len(logs) - 1)]:.2f}",
                f"{statistics.median(one.log for one in group):+.3f}",
                f"{100 * _held(group):.0f} %",
            )
        )
    head = ("quantity", "source", "rows", "median", "90th", "bias", "band")
    return Table(title=title, head=head, rows=tuple(lines))


def _left_out(rows: Sequence[Compared]) -> Iterable[Table]:
    """The share of the peak that products reach is chosen by training rows, and two numbers of
    engines by rows of generation; so each source is also judged by what the others would choose."""
    for kind, title in (("training", "Training"), ("RL step", "RL steps")):
        logs: dict[str, list[float]] = defaultdict(list)
        for (name, source), group in _grouped(rows):
            if name == kind:  # versions of a page are one source
                logs[source.partition(" ")[0]] += [one.log for one in group]
        yield left_out_table(f"{title}, each source by what the others fit.", logs)


def _bottlenecks(rows: Sequence[Compared]) -> Table:
    told = [one for one in rows if one.row.told.get("longest")]
    return Table(
        title="The longest stage of RL steps whose pages tell them apart.",
        head=("row", "measured", "estimated"),
        rows=tuple((one.row.id, one.row.told["longest"], one.stage) for one in told),
    )


def _overlaps() -> Table:
    return Table(
        title="Speed-up by overlap of generation and learning on the same GPUs.",
        head=("rows", "measured", "estimated"),
        rows=tuple(
            (pair, f"{math.exp(measured):.2f}", f"{math.exp(predicted):.2f}")
            for pair, measured, predicted in speed.signs()
        ),
    )


def _worst(rows: Sequence[Compared]) -> Table:
    worst = sorted(rows, key=lambda one: -abs(one.log))[:WORST]
    return Table(
        title="Speed, the worst rows.",
        head=("row", "source", "measured", "estimated", "log", "why"),
        rows=tuple(
            (
                one.row.id,
                one.row.source,
                f"{float(one.row.value):.4g}",
                f"{one.predicted:.4g}",
                f"{one.log:+.2f}",
                WHY.get(one.row.id, "not known"),
            )
            for one in worst
        ),
    )
