"""What proves each kind of node and each way of being it, gathered from the tests themselves; the
table in the README of the roles shows it, and `test_node_table` holds both.

*contract*: tests of what comes in and what goes out, on tables. *on CPU*: a whole run with tiny
models has it; *learns* where a node of that form is taught in one. *refused*: fields of it that a
run refuses by name, of the loops in `plan/refusals.py`.
"""

import importlib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.engine.algorithm_loops import LOOPS, algorithm_loop
from tests.engine.plan.refusals import places
from tests.engine.roles.node_contracts import CONTRACTS
from tests.engine.roles.node_forms import Form, all_forms, forms_in, forms_of

from coloop.spec import presets
from coloop.spec.io import parse, to_dict

RUNS = Path(__file__).resolve().parents[1] / "runs"
MADE = {
    "test_tools": lambda module: [module.acting()],
    "test_remote_rewards": lambda module: [_served(module.LOOP)],
    "test_remote_writers": lambda module: [module.remote(None)],
}
"""Loops that tests of a module put together while they run."""
PRESETS = ("dpo-from-file",)
"""Of which a test takes whole steps, beside those that are made tiny."""

HEAD = "| kind | variant | contract | on CPU | refused |"


def texts_of_runs() -> Iterator[str]:
    """Loops that whole runs carry out, in the tests."""
    for path in sorted(RUNS.glob("test_*.py")):
        module = importlib.import_module(f"tests.engine.runs.{path.stem}")
        yield from (text for text in vars(module).values() if _is_loop(text))
        yield from MADE.get(path.stem, lambda module: [])(module)
    for path in sorted((*RUNS.glob("combinations/*.yaml"), *RUNS.glob("loops/*.yaml"))):
        yield path.read_text(encoding="utf-8").partition("\n---\n")[0]
    tiny = importlib.import_module("tests.engine.runs.conftest").TINY
    yield from (presets.load_loop_text(name) for name in (*tiny, *PRESETS))
    yield from map(algorithm_loop, LOOPS)


@cache
def on_cpu() -> dict[Form, str]:
    """By form that a whole run has: whether it learns there."""
    found: dict[Form, str] = {}
    for text in texts_of_runs():
        spec = parse(text).spec
        for form, one in forms_in(to_dict(spec)).items() if spec is not None else ():
            found[form] = "learns" if one.learns or found.get(form) == "learns" else "yes"
    return found


@cache
def refused() -> dict[Form, frozenset[str]]:
    """By form the fields of it that a run refuses."""
    found: dict[Form, set[str]] = defaultdict(set)
    for spec, node, field in places():
        for form in forms_of(to_dict(spec), node):
            found[form].add(field)
    return {form: frozenset(fields) for form, fields in found.items()}


def rows() -> Iterator[list[str]]:
    """The table, a row a form."""
    for kind, name in all_forms():
        form = (kind, name)
        files = sorted({test.partition("::")[0] for test in CONTRACTS.get(form, ())})
        fields = sorted(field for field in refused().get(form, ()) if field)
        yield [
            f"`{kind}`",
            name,
            ", ".join(f"`tests/engine/{file}`" for file in files) or "–",
            on_cpu().get(form, "–"),
            ", ".join(f"`{field}`" for field in fields) or "nothing",
        ]


def written() -> str:
    """As the README has it."""
    lines = [HEAD, "|---" * (HEAD.count(" | ") + 1) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows())])


def _is_loop(text: object) -> bool:
    return isinstance(text, str) and "coloop: 1" in text


def _served(loop: str) -> str:
    return loop.format(source='{type: remote, url: "http://localhost:1/"}', schedule="")
