"""`coloop estimate`, `fit`, `place` and `plan`: what a loop needs, and how it would run."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from coloop.cli.app import Json, Settings, Spec
from coloop.cli.check import UNREADABLE, checked_spec, print_run_check
from coloop.cli.formulas import print_terms
from coloop.cli.output import complain, console, print_json, table_of
from coloop.cli.sizes import estimate_model, is_model
from coloop.data.files.marks import write_whole
from coloop.plan.cost import Estimate, Explanation
from coloop.plan.cost.placing import Placement, place
from coloop.plan.cost.relaxing import BudgetResult, FitChange
from coloop.plan.cost.report import GpuEstimate
from coloop.plan.cost.solving import fit, solve
from coloop.plan.cost.ways import Found, Way, look_for_ways
from coloop.plan.run_check import check_run, refused_because, refused_words
from coloop.plan.settings.settings import Note
from coloop.plan.terms import terms_of
from coloop.spec.diagnostics import Change
from coloop.spec.graph import LoopSpec
from coloop.spec.presets import patched
from coloop.spec.solvable import locks_of
from coloop.units import gib, rate, seconds
from coloop.validate import validate

PARTS = (
    *("weights", "gradients", "optimizer", "activations"),
    *("logits", "kv_cache", "transfer", "overhead"),
)
DOES_NOT_FIT = 1
UNKNOWN = "unknown"
VERDICTS = {True: "[green]fits[/]", False: "[bold red]too much[/]", None: "[yellow]unknown[/]"}


def estimate_command(
    spec: Annotated[
        str,
        typer.Argument(
            metavar="SPEC",
            help="Loop file, `-` for standard input, name of a preset; or a model: a folder with a "
            "`config.json`, a hub id, an architecture.",
        ),
    ],
    settings: Settings = None,
    with_assumptions: Annotated[
        bool,
        typer.Option("--explain", help="Also print the formulas behind the numbers."),
    ] = False,
    as_json: Json = False,
) -> int:
    if is_model(spec):
        return estimate_model(spec, as_json=as_json)
    checked, loop = checked_spec(spec, settings, as_json=as_json)
    explanation = checked.explanation
    assert explanation is not None
    estimate = explanation.estimate
    run_check = check_run(loop, checked.unrolled, root=checked.source.root)
    if as_json:
        whole = ("total_seconds", "gpu_hours", "cost")
        document = estimate.model_dump(mode="json") | run_check.to_json()
        document["run"] = {name: getattr(explanation, name) for name in whole}
        if with_assumptions:
            terms = terms_of(loop, checked.unrolled, root=checked.source.root)
            document["explain"] = explanation.model_dump(mode="json", exclude={"estimate"})
            document["explain"]["terms"] = terms.model_dump(mode="json")
        print_json(document)
    else:
        out = console()
        _print_estimate(out, estimate)
        _print_cost(out, explanation)
        if with_assumptions:
            _print_explanation(out, explanation)
            _heading(out, "formulas")
            print_terms(out, terms_of(loop, checked.unrolled, root=checked.source.root))
        else:
            shown = {node for gap in estimate.unknown for node in gap.nodes}
            for note in explanation.notes:
                if note.is_gap and note.node not in shown:
                    out.print(f"[yellow]not counted[/] {_note(note)}")
        print_run_check(run_check)
    return 0 if estimate.fits else DOES_NOT_FIT


def _note(note: Note) -> str:
    return escape(f"{note.node}: {note.message}" if note.node else note.message)


def _print_estimate(out: Console, estimate: Estimate) -> None:
    out.print(_gpu_table(estimate.gpus))
    out.print(_stage_table(estimate))
    for node, rollout in estimate.rollout.items():
        out.print(
            f"{escape(node)} generates {rollout.max_concurrent_sequences} sequences at once "
            f"(KV cache of {rollout.kv_cache_tokens} tokens, {gib(rollout.kv_cache_bytes)})"
        )
    sizes = ", ".join(f"{name} {_millions(n)}" for name, n in estimate.parameters.items())
    if sizes:
        out.print(f"parameters: {escape(sizes)}")
    for guess in estimate.guessed:
        out.print(f"[yellow]guessed[/]: {escape(guess.node)} ({escape(guess.reason)})")
    _print_gaps(out, estimate)
    if estimate.step_seconds is None:
        _print_missing(out, estimate)
        return
    bottleneck = (
        f", longest stage [bold]{escape(estimate.bottleneck)}[/]" if estimate.bottleneck else ""
    )
    out.print(f"one step takes [bold]{seconds(estimate.step_seconds)}[/]{bottleneck}")


def _print_cost(out: Console, explanation: Explanation) -> None:
    """Time, GPU-hours and cost of the whole run, as far as they are known."""
    total, hours, cost = explanation.total_seconds, explanation.gpu_hours, explanation.cost
    if total is None or not explanation.estimate.fits:
        return
    parts = [f"the whole run takes up to {seconds(total)}"]
    if hours is not None:
        parts.append(f"{hours:,.1f} GPU-hours")
    if cost is not None:
        parts.append(f"costs {cost:,.2f}")
    out.print(", ".join(parts), highlight=False)


def _print_gaps(out: Console, estimate: Estimate) -> None:
    for gap in estimate.unknown:
        text = f"{' and '.join(gap.nodes)} ({gap.reason}; {gap.hint})"
        out.print(f"[bold yellow]unknown[/]: {escape(text)}")


def _print_missing(out: Console, estimate: Estimate) -> None:
    reasons: dict[str, list[str]] = {}
    for stage in estimate.stages:
        if stage.reason is not None:
            reasons.setdefault(stage.reason, []).append(stage.stage)
    for reason, stages in reasons.items():
        out.print(f"no time for {escape(', '.join(stages))}: {escape(reason)}")


def _gpu_table(gpus: Iterable[GpuEstimate]) -> Table:
    table = table_of("GPU", "peak", "usable", "", "at", "parts", right=("peak", "usable"))
    for label, gpu in _alike(gpus):
        table.add_row(
            escape(label),
            UNKNOWN if gpu.peak_bytes is None else gib(gpu.peak_bytes),
            gib(gpu.usable_bytes),
            VERDICTS[gpu.fits],
            escape(gpu.peak_stage),
            _shares(gpu),
        )
    return table


def _alike(gpus: Iterable[GpuEstimate]) -> list[tuple[str, GpuEstimate]]:
    """Group neighboring GPUs with the same numbers into one row, `main 0-7`."""
    runs: list[list[GpuEstimate]] = []
    for gpu in gpus:
        last = runs[-1][-1] if runs else None
        is_same = last is not None and (last.pool, last.parts) == (gpu.pool, gpu.parts)
        if is_same:
            runs[-1].append(gpu)
        else:
            runs.append([gpu])
    return [
        (f"{run[0].pool} {run[0].index}" + (f"-{run[-1].index}" if len(run) > 1 else ""), run[0])
        for run in runs
    ]


def _shares(gpu: GpuEstimate) -> str:
    sums = dict.fromkeys(PARTS, 0)
    for part in gpu.parts:
        if gpu.peak_stage in part.stages:
            sums[part.part] += part.bytes
    return ", ".join(f"{name.replace('_', ' ')} {gib(size)}" for name, size in sums.items() if size)


def _stage_table(estimate: Estimate) -> Table:
    numbers = ("time", "samples/s", "tokens/s")
    table = table_of("stage", *numbers, "bound by", right=numbers)
    for stage in estimate.stages:
        if stage.seconds is None:
            table.add_row(escape(stage.stage), UNKNOWN, "", "", "")
            continue
        table.add_row(
            escape(stage.stage),
            seconds(stage.seconds),
            rate(stage.samples_per_second),
            rate(stage.tokens_per_second),
            stage.bound,
            style="bold" if stage.stage == estimate.bottleneck else "",
        )
    return table


def _print_explanation(out: Console, explanation: Explanation) -> None:
    _heading(out, "phases")
    for phase in explanation.phases:
        steps = f"{phase.steps} steps, " if phase.steps else ""
        total = f", {seconds(phase.seconds)} in total" if phase.seconds is not None else ""
        each = UNKNOWN if phase.step_seconds is None else f"{seconds(phase.step_seconds)} each"
        out.print(f"  {escape(phase.name)}: {steps}{each}{total}")
    if explanation.total_seconds is not None:
        out.print(f"  all phases together take up to {seconds(explanation.total_seconds)}")
    if explanation.decisions:
        _heading(out, "chosen settings")
        for decision in explanation.decisions:
            out.print(
                f"  {escape(decision.path)} = {decision.value} [dim]({escape(decision.reason)})[/]"
            )
    if explanation.notes:
        _heading(out, "assumptions and gaps")
        for note in explanation.notes:
            out.print(f"  {_note(note)}")
    low, high = explanation.memory_band
    fast, slow = explanation.time_band
    _heading(out, "accuracy")
    out.print(f"  memory: measured peaks are between {low:g} and {high:g} times the estimate")
    out.print(f"  time: measured times are between {fast:g} and {slow:g} times the estimate")
    if explanation.host_bytes:
        out.print(f"  {gib(explanation.host_bytes)} are kept in host memory")
    if explanation.advice:
        _heading(out, "advice")
        for sentence in explanation.advice:
            out.print(f"  {escape(sentence)}")


def _heading(out: Console, text: str) -> None:
    out.print(f"\n[bold]{text}[/]")


def _millions(count: int) -> str:
    return f"{count / 1e9:.2f}B" if count >= 1e9 else f"{count / 1e6:.2f}M"


def plan_command(spec: Spec, settings: Settings = None, as_json: Json = False) -> None:
    checked, loop = checked_spec(spec, settings, as_json=as_json)
    run_check = check_run(loop, checked.unrolled, root=checked.source.root)
    if as_json:
        print_json(run_check.plan.model_dump(mode="json") | run_check.to_json())
        return
    out = console()
    for line in run_check.plan.explain:
        out.print(escape(line))
    print_run_check(run_check)


def fit_command(
    spec: Spec,
    settings: Settings = None,
    budget_gib: Annotated[
        float | None, typer.Option("--budget-gib", min=0.0, help="Memory of each GPU, in GiB.")
    ] = None,
    budget_fraction: Annotated[
        float | None,
        typer.Option("--budget-fraction", min=0.0, max=1.0, help="Share of each GPU's memory."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="Write the fitted loop to this file; `-` prints it."),
    ] = None,
    as_json: Json = False,
) -> int:
    """Find settings that make a loop fit into memory; if none do, what else would."""
    if budget_gib is not None and budget_fraction is not None:
        raise typer.BadParameter("give --budget-gib or --budget-fraction, not both")
    if as_json and str(out) == "-":
        raise typer.BadParameter("give --json or --out -, not both")
    checked, loop = checked_spec(spec, settings, as_json=as_json)
    root, locks = checked.source.root, locks_of(loop)
    fitted = fit(
        loop, budget_gib=budget_gib, budget_fraction=budget_fraction, root=root, locks=locks
    )
    found = None if fitted.fits else _ways(loop, fitted, root, locks)
    if as_json:
        print_json(_fit_json(fitted, found))
    else:
        printer = console(stderr=str(out) == "-")
        _print_changes(printer, fitted)
        if found is not None and not fitted.after.estimate.unknown:
            _print_ways(printer, found)
    if not fitted.fits:
        return DOES_NOT_FIT
    if out is None:
        return 0
    changes = [Change(op="set", path=change.path, value=change.new) for change in fitted.changes]
    return _write(patched(checked.source.text, changes), out)


def _print_changes(out: Console, fitted: BudgetResult) -> None:
    for change in fitted.changes:
        before = "not set" if change.old is None else _show(change.old)
        out.print(
            f"{escape(change.path)}: {before} → [bold]{_show(change.new)}[/] "
            f"[dim]({escape(change.reason)})[/]"
        )
    was, now = fitted.before.estimate.step_seconds, fitted.after.estimate.step_seconds
    gpu = fitted.binding
    if fitted.after.estimate.unknown:
        _print_gaps(out, fitted.after.estimate)
        out.print("[bold yellow]not known[/]: cannot tell whether it fits")
        return
    if gpu is not None and gpu.peak_bytes is not None:
        state = f"{gpu.pool} {gpu.index} peaks at {gib(gpu.peak_bytes)} in {gpu.peak_stage}"
        out.print(f"{escape(state)}; {gib(gpu.usable_bytes)} are usable")
    if fitted.fits and now is not None:
        before = "" if was is None else f" (was {seconds(was)})"
        out.print(f"[green]fits[/]; a step takes {seconds(now)}{before}")
    elif fitted.over_bytes:
        least = fitted.least_over_bytes
        at_best = f"; {gib(least)} over with every setting that may change" if least else ""
        out.print(f"[bold red]does not fit[/]: {gib(fitted.over_bytes)} over{at_best}")
    elif gpu is not None:
        out.print(f"[bold red]does not fit[/]: {escape(gpu.reason or '')}")
    if fitted.refusals:
        out.print(f"[bold red]does not run[/]: {escape(refused_words(fitted.refusals))}")


def _ways(spec: LoopSpec, fitted: BudgetResult, root: Path, locks: Sequence[str]) -> Found:
    budget = fitted.spec.hardware.memory_budget
    failed = solve(spec, budget_fraction=budget, root=root, locks=locks)
    return look_for_ways(spec, failed, locks, root, lambda other: _refusal(other, root))


def _print_ways(out: Console, found: Found) -> None:
    if not found.ways:
        out.print("[dim]no single change that was tried makes it fit[/]")
    for way in found.ways:
        out.print(f"  {escape(way.title)}: {escape(_outcome(way))} [dim]({escape(way.reason)})[/]")
    if found.ruled_out:
        out.print("[dim]no help here:[/]")
    for other in found.ruled_out:
        out.print(f"  [dim]{escape(other.title)}: {escape(other.reason)}[/]")


def _fit_json(fitted: BudgetResult, found: Found | None) -> dict[str, Any]:
    ways = () if found is None else found.ways
    return {
        "fits": None if fitted.after.estimate.unknown else fitted.fits,
        "over_bytes": fitted.over_bytes,
        "changes": [_change_json(change) for change in fitted.changes],
        "refusals": [
            refusal.model_dump(mode="json", exclude_none=True) for refusal in fitted.refusals
        ],
        "before": fitted.before.estimate.model_dump(mode="json"),
        "after": fitted.after.estimate.model_dump(mode="json"),
        "ways": [
            {
                "touches": way.touches,
                "title": way.title,
                "reason": way.reason,
                "unlocks": list(way.unlocks),
                "step_seconds": way.step_seconds,
                "peak_bytes": way.peak_bytes,
                "over_bytes": way.over_bytes,
                "refusal": way.refusal,
                "changes": [_change_json(change) for change in way.changes if change.is_written],
            }
            for way in ways
        ],
        "ruled_out": [asdict(other) for other in (() if found is None else found.ruled_out)],
    }


def _change_json(change: FitChange) -> dict[str, Any]:
    return {"path": change.path, "old": change.old, "new": change.new, "reason": change.reason}


def place_command(
    spec: Spec,
    settings: Settings = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="Write the loop with the placement; `-` prints it."),
    ] = None,
    as_json: Json = False,
) -> int:
    if as_json and str(out) == "-":
        raise typer.BadParameter("give --json or --out -, not both")
    checked, loop = checked_spec(spec, settings, as_json=as_json)
    root = checked.source.root
    found = place(loop, root=root, refusal=lambda other: _refusal(other, root))
    if as_json:
        print_json(
            {
                "yours": asdict(found.yours),
                "suggested": None if found.suggested is None else asdict(found.suggested),
                "reason": found.reason,
                "changes": [_change_json(change) for change in found.changes],
                "tried": found.tried,
            }
        )
    else:
        printer = console(stderr=str(out) == "-")
        printer.print(f"yours: {escape(_placement(found.yours))}")
        if found.suggested is None:
            printer.print(escape(f"no other is suggested: {found.reason}"))
        else:
            printer.print(f"suggested: [bold]{escape(_placement(found.suggested))}[/]")
            printer.print(f"[dim]{escape(found.reason)}[/]")
        for change in found.changes:
            printer.print(f"  {escape(change.path)}: {_show(change.new)}", highlight=False)
    if out is None:
        return 0
    changes = [
        Change(op="set", path=change.path, value=change.new)
        if change.new is not None
        else Change(op="remove", path=change.path)
        for change in found.changes
    ]
    return _write(patched(checked.source.text, changes), out)


def _placement(placed: Placement) -> str:
    if placed.step_seconds is None:
        over = f", {gib(placed.over_bytes)} over" if placed.over_bytes else ""
        return f"{placed.text}: " + (f"does not fit{over}" if not placed.fits else "no time known")
    peak = "" if placed.peak_bytes is None else f", {gib(placed.peak_bytes)} on the fullest GPU"
    return f"{placed.text}: a step takes {seconds(placed.step_seconds)}{peak}"


def _outcome(way: Way) -> str:
    peak = "" if way.peak_bytes is None else f" in {gib(way.peak_bytes)}"
    memory = f"still {gib(way.over_bytes)} over" if way.over_bytes else f"fits{peak}"
    if way.refusal is not None:
        return f"{memory}, but {refused_because(way.refusal)}"
    if way.step_seconds is None:
        return memory
    return f"{memory}, a step takes {seconds(way.step_seconds)}"


def _refusal(spec: LoopSpec, root: Path) -> str | None:
    errors = validate(spec, root=root).errors
    if errors:
        return errors[0].message
    refusals = check_run(spec, root=root).refusals
    return refusals[0].message if refusals else None


def _show(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "none" if value is None else str(value)


def _write(text: str, out: Path) -> int:
    if str(out) == "-":
        console().file.write(text)
        return 0
    try:
        write_whole(out, text)
    except OSError as error:
        complain(f"{out} cannot be written: {error.strerror or error}")
        return UNREADABLE
    return 0
