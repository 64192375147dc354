"""The formulas behind an estimate give its numbers."""

import math
import re

import pytest

from coloop.plan.cost import explain
from coloop.plan.settings.traced import Constant, leaf, listed, named
from coloop.plan.terms import Line, Term, Terms, terms_of
from coloop.plan.terms.formula import as_weighted_sum, lines_of
from coloop.plan.unrolled import Unrolled
from coloop.spec import presets
from coloop.spec.graph import LoopSpec
from coloop.spec.io import from_dict, parse

FEW = ("grpo-qwen2.5-7b-8xH100", "genprm", "one-step-off-qwen2.5-7b-16xH100", "grpo-arithmetic")
MANY = tuple(name for name in presets.loop_names() if name not in FEW)
SUM = re.compile(
    r"sum of (?P<name>.+ )(?P<first>\d+)(?P<rest> \(\d+\))? to (?P=name)(?P<last>\d+).*"
)


def loop(name: str) -> LoopSpec:
    spec = parse(presets.load_loop_text(name)).spec
    assert spec is not None
    return spec


def recomputed(line: Line, term: Term) -> float:
    """The value of a line's formula, from the lines that it names."""
    assert line.formula is not None
    values = {other.name: other.value for other in term.lines if other.name}
    if (found := SUM.fullmatch(line.formula)) is not None:
        name, rest = found["name"], found["rest"] or ""
        numbers = range(int(found["first"]), int(found["last"]) + 1)
        return sum(
            values.get(f"{name}{number}{rest}", values.get(f"{name}{number}", 0.0))
            for number in numbers
        )
    names = sorted(values, key=len, reverse=True)
    text = line.formula
    for place, name in enumerate(names):
        text = text.replace(name, f"\0{place}\0")
    text = re.sub("\0(\\d+)\0", r"value(\1)", text)
    for sign, operator in (("×", "*"), ("÷", "/"), ("−", "-")):
        text = text.replace(sign, operator)
    known = {"value": lambda place: values[names[place]], "ceil": math.ceil, "floor": math.floor}
    return float(eval(text, {"__builtins__": {}}, known))


def check_term(term: Term) -> None:
    first = term.lines[0]
    assert (first.name, first.value, first.depth) == ("", term.value, 0)
    for line in term.lines:
        assert line.formula is not None or line.source or (line is first and term.source), line
        if line.formula is not None:
            assert recomputed(line, term) == pytest.approx(line.value, rel=1e-6), line


def check_loop(spec: LoopSpec) -> Terms:
    unrolled = Unrolled(spec)
    found = explain(spec, unrolled)
    terms = terms_of(spec, unrolled)
    for gpu in found.estimate.gpus:
        for part in gpu.parts:
            key = gpu.pool, part.node, part.part, part.stages, part.bytes
            alike = [(t.pool, t.node, t.part, t.stages, t.bytes) for t in terms.parts]
            assert alike.count(key) == 1, key
        if gpu.peak_bytes is not None and gpu.index == 0:
            peak = next(one.term for one in terms.peaks if one.pool == gpu.pool)
            assert peak.value == pytest.approx(gpu.peak_bytes, abs=len(gpu.parts))
    times = {(term.stage, term.phase): term.term.value for term in terms.stages}
    for stage in found.estimate.stages:
        assert times.get((stage.stage, None)) == stage.seconds
    for phase in found.phases:
        for stage in found.stages_in[phase.name]:
            largest = times.get((stage.stage, None))
            assert times.get((stage.stage, phase.name), largest) == stage.seconds
        steps = [step.term.value for step in terms.steps if step.phase == phase.name]
        assert steps == ([] if phase.step_seconds is None else [pytest.approx(phase.step_seconds)])
    whole = ((terms.total, "total_seconds"), (terms.gpu_hours, "gpu_hours"), (terms.cost, "cost"))
    for term, name in whole:
        assert (None if term is None else term.value) == pytest.approx(getattr(found, name))
    listed_terms = (*terms.parts, *terms.peaks, *terms.stages, *terms.steps)
    for term in (*(one.term for one in listed_terms), *(term for term, _ in whole if term)):
        check_term(term)
    return terms


@pytest.mark.parametrize("name", FEW)
def test_the_formulas_of_a_loop_give_its_numbers(name: str) -> None:
    check_loop(loop(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", MANY)
def test_the_formulas_of_every_preset_give_its_numbers(name: str) -> None:
    check_loop(loop(name))


def test_a_formula_in_words() -> None:
    states = leaf(4, "bytes") * leaf(7e9, "parameters", "", "config.json") / leaf(8, "GPUs")
    half = named("half of it", states / 2, "B")
    lines = lines_of(half + leaf(6e9, "more", "B"), "B")
    assert [(line.name, line.value, line.formula, line.depth) for line in lines] == [
        ("", 7.75e9, "half of it + more", 0),  # 4 * 7e9 / 8 / 2 + 6e9
        ("half of it", 1.75e9, "bytes × parameters ÷ GPUs ÷ 2", 1),
        ("bytes", 4.0, None, 2),
        ("parameters", 7e9, None, 2),
        ("GPUs", 8.0, None, 2),
        ("more", 6e9, None, 1),
    ]
    assert lines[3].source == "config.json"


def test_what_changes_nothing_is_left_out() -> None:
    size = leaf(3, "size")
    assert (size * 1 / 1 + 0) is size
    assert type(size - size) is float
    assert Constant(2.5, "twice and a half") * 2.0 == 5.0
    assert lines_of(Constant(2.5, "share") * size, "")[0].formula == "share × size"


def test_brackets_only_where_they_are_needed() -> None:
    a, b, c = leaf(2, "a"), leaf(3, "b"), leaf(7, "c")
    formulas = {
        "a × (b + c)": a * (b + c),
        "a − (b + c)": a - (b + c),
        "a ÷ (b × c)": a / (b * c),
        "a × b ÷ c": a * b / c,
        "a + b − c": a + b - c,
    }
    for text, number in formulas.items():
        assert lines_of(number, "")[0].formula == text


def test_a_step_that_overlaps_is_a_sum_of_stages() -> None:
    write, learn = leaf(4.0, "write", "s"), leaf(10.0, "learn", "s")
    cycle = ((write + learn + learn + learn) - (write + learn)) / 2
    assert lines_of(as_weighted_sum(cycle), "s")[0].formula == "learn"


def test_a_list_is_one_step() -> None:
    parts = [leaf(0.5, "x") * place for place in (2.0, 3.0, 4.0)]
    lines = lines_of(listed("all", "part", parts) + leaf(1.5, "rest"), "")
    assert lines[0].value == 6.0  # 1 + 1.5 + 2 + 1.5
    assert lines[1].formula == "sum of part 1 to part 3"
    assert listed("all", "part", [1.0, 2.0]) == 3.0


def test_an_estimate_after_its_formulas_has_plain_numbers() -> None:
    spec = loop("grpo-qwen2.5-7b-8xH100")
    before = explain(spec)
    terms_of(spec)
    after = explain(spec)
    assert after == before
    assert {type(stage.seconds) for stage in after.estimate.stages} == {float}


def test_own_figures_and_the_price_say_so() -> None:
    document = parse(presets.load_loop_text("grpo-qwen2.5-7b-8xH100")).document
    assert document is not None
    hardware = {"preset": "8xH100", "figures": {"bandwidth": 3000}, "price_per_gpu_hour": 2.0}
    spec = from_dict(document | {"hardware": hardware}).spec
    assert spec is not None
    terms = check_loop(spec)
    sources = {
        line.name: line.source for stage in terms.stages for line in stage.term.lines if line.source
    }
    assert sources["memory bandwidth"] == "your own figure"
    assert sources["bfloat16 operations a second"] == "data of H100-80GB"
    assert terms.cost is not None
    assert terms.gpu_hours is not None
    assert terms.cost.value == pytest.approx(2.0 * terms.gpu_hours.value)
    assert terms.cost.lines[0].formula == "GPU-hours × price of a GPU for an hour"


def test_an_unknown_model_has_no_peak() -> None:
    document = parse(presets.load_loop_text("grpo-qwen2.5-7b-8xH100")).document
    assert document is not None
    document["nodes"]["actor"]["model"]["path"] = "nobody/nothing-7b"
    spec = from_dict(document).spec
    assert spec is not None
    terms = terms_of(spec)
    assert terms.peaks == ()
    assert terms.total is None
