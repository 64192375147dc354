"""The formulas of `coloop estimate --explain`, in words."""

from collections.abc import Iterator

from rich.console import Console
from rich.markup import escape

from coloop.plan.settings.traced import Unit
from coloop.plan.terms import Line, Term, Terms
from coloop.units import gib, seconds

SHOWN_DEPTH = 1
"""Deeper lines are in the JSON."""


def print_terms(out: Console, terms: Terms) -> None:
    for name, term in _named(terms):
        out.print(f"  [bold]{escape(name)}[/]: {_shown(term.lines[0], term.unit)}")
        for line in term.lines[1:]:
            if line.depth <= SHOWN_DEPTH:
                value = amount(line.value, line.unit)
                formula = "" if line.formula is None else f" = {line.formula}"
                source = "" if line.source is None else f" ({line.source})"
                out.print(f"      [dim]{escape(f'{line.name} {value}{formula}{source}')}[/]")
        if term.source is not None:
            out.print(f"      [dim]from: {escape(term.source)}[/]")


def _named(terms: Terms) -> Iterator[tuple[str, Term]]:
    for peak in terms.peaks:
        yield f"peak of {peak.pool}", peak.term
    for part in terms.parts:
        during = ", ".join(part.stages) if len(part.stages) < 3 else f"{len(part.stages)} stages"
        yield f"{part.pool}, {part.part.replace('_', ' ')} of {part.node}, {during}", part.term
    for stage in terms.stages:
        yield f"{stage.stage}" + (f" in {stage.phase}" if stage.phase else ""), stage.term
    for step in terms.steps:
        yield f"a step of {step.phase}", step.term
    whole = {"the whole run": terms.total, "GPU-hours": terms.gpu_hours, "cost": terms.cost}
    yield from ((name, term) for name, term in whole.items() if term is not None)


def _shown(line: Line, unit: Unit) -> str:
    value = amount(line.value, unit)
    return value if line.formula is None else f"{value} = {escape(line.formula)}"


def amount(value: float, unit: Unit) -> str:
    """A number with its unit, in three or four digits."""
    match unit:
        case "B":
            return gib(value) if value >= 1024 else f"{value:.4g} B"
        case "s":
            return seconds(value) if value >= 1e-3 else f"{value * 1e6:.3g} µs"
        case "FLOP/s":
            return f"{value / 1e12:,.4g} TFLOP/s"
        case "B/s":
            return f"{value / 1e9:,.4g} GB/s"
        case "money":
            return f"{value:,.2f}"
    digits = f"{value / 1e9:.2f}B" if abs(value) >= 1e9 else f"{value:,.6g}"
    if float(value).is_integer() and abs(value) < 1e9:
        digits = f"{int(value):,}"
    return f"{digits} {unit}".strip()
