"""Writes the table and the figures of README.md from the kept results."""

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from statistics import fmean, stdev

from tests.experiments.rows import Outcome, Row, kept
from tests.experiments.table import (
    CONTROL,
    EXPERIMENTS,
    FULL,
    SEEDS,
    SHUFFLED,
    Experiment,
)

from coloop.explain.controls import Arm, Comparison, Curve

HERE = Path(__file__).parent
PAGE = HERE / "README.md"
FIGURES = HERE / "figures"
BEGIN, END = "<!-- results: written by python -m tests.experiments -->", "<!-- end -->"

Results = dict[str, list[Outcome]]
"""By arm, in the order of the seeds; without those that are missing."""
Curved = Sequence[tuple[int, float]]
"""Readings by steps since the phase began."""
Drawn = MutableMapping[str, list[Curved]]
"""By arm, a curve for each seed."""

HEAD = (
    "system",
    "metric",
    "full",
    "control",
    "lead",
    "ahead",
    "ablations",
    "shuffled",
    "seeds",
    "CPU s a run",
)


def results_of(experiment: Experiment) -> Results:
    found: Results = {}
    for arm in (FULL, *experiment.arms):
        rows = (Row(experiment=experiment, arm=arm, seed=seed) for seed in SEEDS)
        found[arm] = [outcome for row in rows if (outcome := kept(row)) is not None]
    return found


def compared(results: Results) -> Comparison:
    """`full` beside its control, as `coloop control` compares them."""
    full, control = (_as_arm(kind, results.get(kind, [])) for kind in (FULL, CONTROL))
    return Comparison(full=full, control=control)


def _as_arm(kind: str, outcomes: Sequence[Outcome]) -> Arm:
    curves = (
        Curve(seed=seed, run=kind, steps=(0, 1), values=(one.start, one.end), begins_at=0)
        for seed, one in zip(SEEDS, outcomes, strict=False)
    )
    return Arm(kind="full" if kind == FULL else "plain", curves=tuple(curves))


def write_report() -> None:
    """Rewrite the part of README.md between the marks, and the figures."""
    every = {experiment.preset: results_of(experiment) for experiment in EXPERIMENTS}
    lines = ["| " + " | ".join(HEAD) + " |", "|" + " --- |" * len(HEAD)]
    lines += ["| " + " | ".join(_cells(one, every[one.preset])) + " |" for one in EXPERIMENTS]
    for experiment in EXPERIMENTS:
        lines += _notes(experiment, every[experiment.preset])
    write_part(BEGIN, END, lines)


def write_part(begin: str, end: str, lines: Sequence[str]) -> None:
    """Put lines between two marks of README.md."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(begin)
    _, _, after = rest.partition(end)
    text = "\n".join([before + begin, "", *lines, "", end + after])
    PAGE.write_text(text, encoding="utf-8")


def _cells(experiment: Experiment, results: Results) -> tuple[str, ...]:
    comparison = compared(results)
    gap, ahead = comparison.difference, comparison.leads
    others = [arm for arm in experiment.arms if arm not in (SHUFFLED, CONTROL)]
    seconds = [one.processor_seconds for one in results[FULL] if one.processor_seconds is not None]
    return (
        experiment.preset,
        experiment.reading,
        _start_and_end(results[FULL]),
        _end(results.get(CONTROL, [])),
        "–" if gap is None else f"{gap:+.3f}",
        "–" if ahead is None else "yes" if ahead else "no",
        "; ".join(f"{arm} {_end(results[arm])}" for arm in others) or "–",
        _end(results.get(SHUFFLED, [])),
        str(len(results[FULL])),
        f"{fmean(seconds):.0f}" if seconds else "–",
    )


def _start_and_end(outcomes: Sequence[Outcome]) -> str:
    if not outcomes:
        return "–"
    return f"{fmean(one.start for one in outcomes):.3f} → {_end(outcomes)}"


def _end(outcomes: Sequence[Outcome]) -> str:
    return mean_and_spread([one.end for one in outcomes])


def mean_and_spread(ends: Sequence[float]) -> str:
    """Mean and sample standard deviation."""
    if not ends:
        return "–"
    return f"{fmean(ends):.3f}" + (f" ± {stdev(ends):.3f}" if len(ends) > 1 else "")


def _notes(experiment: Experiment, results: Results) -> Iterator[str]:
    """The section of a system: what the paper says, what the control does, what was found."""
    texts = [
        f"By the paper: {experiment.paper}" if experiment.paper else "",
        f"The control: {experiment.control}" if experiment.control else "",
        experiment.finding,
        _efforts(results),
    ]
    figure = draw(
        FIGURES / f"{experiment.preset}.svg",
        {arm: [_from_start(one) for one in found if one.steps] for arm, found in results.items()},
        phase=experiment.phase,
        reading=experiment.reading,
    )
    texts = [text for text in texts if text]
    if not texts and figure is None:
        return
    yield from ("", f"### {experiment.preset}", "", " ".join(texts))
    if figure is not None:
        yield from ("", f"![{experiment.reading} of each arm]({figure})")


def _efforts(results: Results) -> str:
    """Learn stages and generated tokens of each arm from the start of the phase on."""
    known = {
        arm: [one for one in found if one.updates is not None] for arm, found in results.items()
    }
    parts = [
        f"{arm} {fmean(one.updates or 0 for one in found):,.0f} and "
        f"{fmean(one.tokens or 0 for one in found):,.0f}"
        for arm, found in known.items()
        if found
    ]
    return f"Learn stages and generated tokens a run: {'; '.join(parts)}." if parts else ""


COLORS = {FULL: "#2563eb", CONTROL: "#d97706", SHUFFLED: "#9ca3af"}
OTHERS = ("#059669", "#7c3aed", "#db2777")


def draw(
    path: Path, curves: Mapping[str, Sequence[Curved]], *, phase: str, reading: str
) -> str | None:
    """Draw each arm's mean and its range over the seeds; the path from README.md, None if `full`
    has no curve."""
    shown = {arm: found for arm, found in curves.items() if found}
    if FULL not in shown:
        return None
    try:
        from matplotlib import rcParams
        from matplotlib.figure import Figure
    except ImportError:
        return f"figures/{path.name}" if path.exists() else None
    rcParams.update({"svg.hashsalt": "coloop", "font.size": 9})
    axes = (figure := Figure(figsize=(6, 3))).subplots()
    colors = iter(OTHERS)
    for arm, found in shown.items():
        color = COLORS.get(arm) or next(colors)
        count = min(map(len, found))
        steps = [step for step, _ in found[0][:count]]
        values = [[value for _, value in curve[:count]] for curve in found]
        means = [fmean(at) for at in zip(*values, strict=True)]
        low, high = ([limit(at) for at in zip(*values, strict=True)] for limit in (min, max))
        axes.plot(steps, means, color=color, label=arm)
        axes.fill_between(steps, low, high, color=color, alpha=0.15, linewidth=0)
    axes.set_xlabel(f"steps since `{phase}` began")
    axes.set_ylabel(reading)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.tight_layout()
    FIGURES.mkdir(exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    return f"figures/{path.name}"


def _from_start(outcome: Outcome) -> list[tuple[int, float]]:
    """Readings by steps since the phase began, with the reading before it as the first."""
    began = outcome.began or 0
    points = zip(outcome.steps, outcome.curve, strict=True)
    return [(0, outcome.start), *((step - began, value) for step, value in points if step > began)]
