"""The report of a run as Markdown."""

from collections.abc import Iterator, Sequence

from coloop.explain.experiment.report import Experiment, PredictedValue, ProbeResult, ScoredText
from coloop.units import count, gib, rate, seconds

TEXT = 300
"""Characters of a sample's text that are shown."""


def markdown_of(found: Experiment) -> str:
    """The whole report; every section that has nothing to say is left out."""
    return "\n".join(_lines(found)) + "\n"


def _lines(found: Experiment) -> Iterator[str]:
    yield f"# {found.loop}: run {found.run}"
    yield ""
    if found.description:
        yield found.description
        yield ""
    yield _headline(found)
    for title, lines in (
        ("What was tried", _tried(found)),
        ("Result", _results(found)),
        ("Against what", _controls(found)),
        ("How sure", _seeds(found)),
        ("Where the time went", _time(found)),
        ("Cost", _cost(found)),
        ("Checkpoints", _checkpoints(found)),
        ("What went wrong", _alerts(found)),
        ("Samples", _samples(found)),
        ("Predicted and measured", _predictions(found.predictions)),
        ("What next", (f"- {step.text}" for step in found.next)),
        ("Run it again", ("```sh", found.command, "```")),
    ):
        shown = list(lines)
        if shown:
            yield from ("", f"## {title}", "", *shown)


def _headline(found: Experiment) -> str:
    main = found.main
    took = f"{count(found.duration.steps, 'step')} in {seconds(found.duration.seconds)}"
    state = f"**{found.state.capitalize()}** after {took}."
    if found.error:
        state += f" {found.error}"
    if main is None:
        return state
    return (
        f"{state} {main.title} (`{main.metric}`) went from **{main.start.value:.3f}** to "
        f"**{_end(main)}**, at best {main.best.value:.3f} at step {main.best.step}."
    )


def _end(result: ProbeResult) -> str:
    error = f" ± {result.error:.3f}" if result.error else ""
    return f"{result.end.value:.3f}{error}"


def _tried(found: Experiment) -> Iterator[str]:
    yield f"Loop `{found.loop}`, seed {found.seed}, on {found.spent.hardware}."
    if found.control:
        yield f"It is a control: {found.control}"
    if found.parent:
        yield f"It began with a checkpoint of `{found.parent}`."
    if found.changes:
        yield ""
        yield from (f"- {change}" for change in found.changes)


def _results(found: Experiment) -> Iterator[str]:
    if not found.results:
        yield "No evaluation has read anything: the result is not known."
        return
    yield "| metric | start | best | at step | end | rows |"
    yield "|---|---:|---:|---:|---:|---:|"
    for one in found.results:
        name = f"**{one.metric}**" if one.is_main else one.metric
        yield (
            f"| {name} | {one.start.value:.3f} | {one.best.value:.3f} | {one.best.step} | "
            f"{_end(one)} | {one.rows or ''} |"
        )


def _controls(found: Experiment) -> Iterator[str]:
    if not found.controls:
        if found.control is None and found.results:
            yield "There is no control: what brought the change is not known."
        return
    yield "| control | runs | end | difference | |"
    yield "|---|---:|---:|---:|---|"
    for one in found.controls:
        end = "" if one.end is None else f"{one.end:.3f}"
        spread = "" if one.spread is None else f" ± {one.spread:.3f}"
        difference = "" if one.difference is None else f"{one.difference:+.3f}"
        leads = {
            True: "the loop leads",
            False: "within the spread",
            None: "too few seeds",
        }[one.leads]
        yield f"| {one.kind}: {one.title} | {one.runs} | {end}{spread} | {difference} | {leads} |"


def _seeds(found: Experiment) -> Iterator[str]:
    main, seeds = found.main, found.seeds
    if main is None or seeds is None:
        return
    if seeds.spread is None:
        yield "One seed: the spread over seeds is not known."
    else:
        ends = ", ".join(f"{one.end:.3f} (seed {one.seed})" for one in seeds.runs)
        yield (
            f"{count(len(seeds.runs), 'seed')}: {seeds.mean:.3f} ± {seeds.spread:.3f} (mean and "
            f"standard deviation of {ends})."
        )
    if main.error is not None and main.rows:
        yield f"With {count(main.rows, 'row')} a reading has a standard error of {main.error:.3f}."


def _time(found: Experiment) -> Iterator[str]:
    duration = found.duration
    attempts = f" in {duration.attempts} attempts" if duration.attempts > 1 else ""
    yield (
        f"{seconds(duration.seconds)}{attempts}; {rate(duration.written_tokens) or '0'} tokens "
        f"generated, {rate(duration.learned_tokens) or '0'} learned from."
    )
    if len(duration.phases) > 1:
        yield from ("", "| phase | steps | time | share |", "|---|---:|---:|---:|")
        for one in duration.phases:
            yield f"| {one.name} | {one.steps} | {seconds(one.seconds)} | {one.share:.0%} |"
    if duration.stages:
        yield from ("", "| stage | time | share of all work |", "|---|---:|---:|")
        for one in duration.stages:
            name = f"{one.name} (evaluation)" if one.is_evaluation else one.name
            yield f"| {name} | {seconds(one.seconds)} | {one.share:.0%} |"
    if found.bottleneck:
        yield from ("", f"Bottleneck: {found.bottleneck}.")


def _cost(found: Experiment) -> Iterator[str]:
    spent = found.spent
    if spent.gpus == 0:
        yield f"{seconds(found.duration.seconds)} of this machine's processors; no GPU."
        return
    price = (
        "" if spent.cost is None else f", {spent.cost:.2f} at {spent.hourly_price:g} per GPU-hour"
    )
    yield f"{spent.hours:.2f} GPU-hours on {spent.hardware}{price}."


def _checkpoints(found: Experiment) -> Iterator[str]:
    best, kept = found.checkpoints.best, found.checkpoints.kept
    if best is not None:
        values = ", ".join(f"{k} {v:.3f}" for k, v in found.checkpoints.best_values.items())
        gone = "" if best in kept else " It is no longer kept."
        yield f"Best: step {best} ({values}).{gone}"
    if kept:
        yield f"Kept: {', '.join(map(str, kept))}."


def _alerts(found: Experiment) -> Iterator[str]:
    for alert in found.alerts:
        where = f"{alert.node}: " if alert.node else ""
        state = "cleared" if alert.cleared else f"raised {count(alert.count, 'time')}"
        hint = f" {alert.hint}" if alert.hint and not alert.cleared else ""
        step = f"step {alert.step}, " if alert.step is not None else ""
        yield f"- {where}{alert.message} (`{alert.code}`, {step}{state}).{hint}"


def _samples(found: Experiment) -> Iterator[str]:
    for title, samples in (("Good", found.good), ("Bad", found.bad)):
        if samples:
            yield f"{title}, step {samples[0].step}:"
            yield ""
            yield from (line for sample in samples for line in _sample(sample))
            yield ""


def _sample(sample: ScoredText) -> Iterator[str]:
    wanted = "" if sample.target is None else f", wanted {_code(sample.target)}"
    yield f"- `{sample.node}`, score {sample.score:.3g}{wanted}"
    yield f"  - {_code(sample.prompt)}"
    yield f"  - {_code(sample.completion)}"


def _code(text: str) -> str:
    """A text on one line as inline code."""
    short = text if len(text) <= TEXT else text[: TEXT - 1] + "…"
    line = short.replace("\n", "⏎").strip()
    ticks = "``" if "`" in line else "`"
    return f"{ticks}{line}{ticks}" if line else "(empty)"


def _predictions(predictions: Sequence[PredictedValue]) -> Iterator[str]:
    if not predictions:
        return
    yield "| | predicted | measured | measured / predicted |"
    yield "|---|---:|---:|---:|"
    for one in predictions:
        is_bytes = one.what.endswith(", bytes")
        shown = gib if is_bytes else seconds
        ratio = f"{one.measured / one.predicted:.2f}" if one.predicted else ""
        what = one.what.removesuffix(", bytes")
        yield f"| {what} | {shown(one.predicted)} | {shown(one.measured)} | {ratio} |"
