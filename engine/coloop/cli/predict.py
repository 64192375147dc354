"""`coloop estimate`: memory of every GPU, time of every stage, and with `--explain` the assumptions
behind them.
"""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from coloop.cli.check import checked_spec, print_run_check
from coloop.cli.output import console, gib, print_json, rate, seconds
from coloop.plan.cost import Estimate, Explanation
from coloop.plan.cost.advice import unknown_hint
from coloop.plan.cost.report import GpuEstimate
from coloop.plan.run_check import check_run

PARTS = (
    "weights",
    "gradients",
    "optimizer",
    "activations",
    "logits",
    "kv_cache",
    "transfer",
    "overhead",
)
DOES_NOT_FIT = 1
UNKNOWN = "unknown"
VERDICTS = {True: "[green]fits[/]", False: "[bold red]too much[/]", None: "[yellow]unknown[/]"}
"""Keys: whether a GPU fits."""


def estimate_command(
    spec: str, settings: Sequence[str] = (), *, explain: bool, as_json: bool
) -> int:
    """Print the estimate of SPEC."""
    checked, code = checked_spec(spec, settings, as_json=as_json)
    if checked is None or checked.spec is None or checked.explanation is None:
        return code
    explanation = checked.explanation
    estimate, run_check = (
        explanation.estimate,
        check_run(checked.spec, checked.unrolled, root=checked.source.root),
    )
    if as_json:
        document = estimate.model_dump(mode="json") | run_check.to_json()
        if explain:
            rest = explanation.model_dump(mode="json", exclude={"estimate"})
            document["explain"] = rest
        print_json(document)
    else:
        out = console()
        print_estimate(out, estimate)
        if explain:
            print_explanation(out, explanation)
        else:
            shown = {node for gap in estimate.unknown for node in gap.nodes}
            gaps = [note for note in explanation.notes if note.is_gap and note.node not in shown]
            for note in gaps:
                where = f"{note.node}: " if note.node else ""
                out.print(f"[yellow]not counted[/] {escape(where + note.message)}")
        print_run_check(run_check)
    return 0 if estimate.fits else DOES_NOT_FIT


def print_estimate(out: Console, estimate: Estimate) -> None:
    """Print GPUs, stages and caches as tables."""
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
    for gap in estimate.unknown:
        names = " and ".join(gap.nodes)
        out.print(
            f"[bold yellow]unknown[/]: {escape(names)} ({escape(gap.reason)}; "
            f"{escape(unknown_hint(gap))})"
        )
    if estimate.step_seconds is None:
        _print_missing(out, estimate)
        return
    bottleneck = (
        f", longest stage [bold]{escape(estimate.bottleneck)}[/]" if estimate.bottleneck else ""
    )
    out.print(f"one step takes [bold]{seconds(estimate.step_seconds)}[/]{bottleneck}")


def _print_missing(out: Console, estimate: Estimate) -> None:
    """Print why the time of a step is not known."""
    reasons: dict[str, list[str]] = {}
    for stage in estimate.stages:
        if stage.reason is not None:
            reasons.setdefault(stage.reason, []).append(stage.stage)
    for reason, stages in reasons.items():
        out.print(f"no time for {escape(', '.join(stages))}: {escape(reason)}")


def _gpu_table(gpus: Iterable[GpuEstimate]) -> Table:
    table = Table(title=None, box=None, pad_edge=False, header_style="dim")
    table.add_column("GPU")
    table.add_column("peak", justify="right")
    table.add_column("usable", justify="right")
    table.add_column("")
    table.add_column("at")
    table.add_column("parts")
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
        same = last is not None and (last.pool, last.parts) == (gpu.pool, gpu.parts)
        if same:
            runs[-1].append(gpu)
        else:
            runs.append([gpu])
    return [
        (f"{run[0].pool} {run[0].index}" + (f"-{run[-1].index}" if len(run) > 1 else ""), run[0])
        for run in runs
    ]


def _shares(gpu: GpuEstimate) -> str:
    """The parts of the peak, summed over nodes."""
    sums = dict.fromkeys(PARTS, 0)
    for part in gpu.parts:
        if gpu.peak_stage in part.stages:
            sums[part.part] += part.bytes
    return ", ".join(f"{name.replace('_', ' ')} {gib(size)}" for name, size in sums.items() if size)


def _stage_table(estimate: Estimate) -> Table:
    table = Table(title=None, box=None, pad_edge=False, header_style="dim")
    table.add_column("stage")
    table.add_column("time", justify="right")
    table.add_column("samples/s", justify="right")
    table.add_column("tokens/s", justify="right")
    table.add_column("bound by")
    for stage in estimate.stages:
        if stage.seconds is None:
            table.add_row(escape(stage.stage), UNKNOWN, "", "", "")
            continue
        style = "bold" if stage.stage == estimate.bottleneck else ""
        table.add_row(
            escape(stage.stage),
            seconds(stage.seconds),
            rate(stage.samples_per_second),
            rate(stage.tokens_per_second),
            stage.bound,
            style=style,
        )
    return table


def print_explanation(out: Console, explanation: Explanation) -> None:
    """Print phases, decisions, assumptions, accuracy and advice."""
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
            where = f"{note.node}: " if note.node else ""
            out.print(f"  {escape(where + note.message)}")
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


def plan_command(spec: str, settings: Sequence[str] = (), *, as_json: bool) -> int:
    """Compile SPEC and print the plan."""
    from coloop.plan.run_check import check_run

    checked, code = checked_spec(spec, settings, as_json=as_json)
    if checked is None or checked.spec is None:
        return code
    run_check = check_run(checked.spec, checked.unrolled, root=checked.source.root)
    if as_json:
        print_json(run_check.plan.model_dump(mode="json") | run_check.to_json())
        return 0
    out = console()
    for line in run_check.plan.explain:
        out.print(escape(line))
    print_run_check(run_check)
    return 0
