"""What a command that checks one loop costs: modules and processor time of a process of its own."""

import json
import os
import resource
import subprocess
import sys

import pytest

from coloop.spec.io import parse

HEAVY = (
    *("torch", "numpy", "ray", "transformers", "vllm", "deepspeed", "safetensors", "pyarrow"),
    *("fastapi", "sqlalchemy", "asyncio", "http.client"),
    *("ruamel.yaml", "coloop.spec.catalog_types"),
)
PRESET = "grpo-qwen2.5-7b-8xH100"
LIBRARIES = "import pydantic.main, yaml, typer, rich.table, jinja2"
MOST = 6.0
"""Processor time of a command, in that of loading its libraries; about 3 on an idle machine."""


def _seconds(*words: str) -> float:
    """The least of two."""

    def once() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, *words], check=True, capture_output=True, env=_environment()
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return min(once() for _ in range(2))


def _environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1"}


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "words",
    [
        *([command, PRESET] for command in ("fit", "estimate", "validate", "plan", "place")),
        ["presets"],
    ],
    ids=lambda words: words[0],
)
def test_it_loads_nothing_heavy(words):
    code = (
        "import sys\n"
        f"sys.argv = ['coloop', *{words!r}]\n"
        "from coloop.cli.app import main\n"
        "try:\n    main()\n"
        "except SystemExit as end:\n    assert not end.code\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=_environment()
    )

    assert done.stdout.splitlines()[-1] == "[]"


def test_it_takes_a_few_times_what_its_libraries_take():
    _seconds("-m", "coloop", "estimate", PRESET)  # compiles what is not compiled yet

    assert _seconds("-m", "coloop", "estimate", PRESET) < MOST * _seconds("-c", LIBRARIES)


BROKEN = """
name: broken
nodes:
  rows: {kind: dataset}
  actor: {kind: actor, rollout: {max_new_tokens: -1, nothing: 2}}
schedule: {phases: [{name: one, steps: 3}]}
"""


def test_models_that_are_built_lean_give_the_same_errors():
    done = subprocess.run(
        [sys.executable, "-m", "coloop", "validate", "-", "--json"],
        input=BROKEN,
        capture_output=True,
        text=True,
        env=_environment(),
        check=False,
    )
    here = parse(BROKEN)
    told = [one.model_dump(mode="json") for one in here.diagnostics]

    found = json.loads(done.stdout)["diagnostics"]
    assert [(one["code"], one["message"], one["hint"]) for one in found] == [
        (one["code"], one["message"], one["hint"]) for one in told
    ]


LEAN_RECORDS = """
from dataclasses import fields
from coloop.spec import lean
lean.build_lean()
@lean.record
class Place:
    name: str
    line: int = 1
assert Place(name="a") == Place(name="a", line=1) and hash(Place(name="a")) == hash(Place(name="a"))
assert not hasattr(Place(name="a"), "__dict__")
assert [one.name for one in fields(Place)] == ["name", "line"]
try:
    Place("a")
except TypeError:
    print("keywords only")
"""


def test_records_that_are_made_lean_compare_and_hash_as_the_others():
    done = subprocess.run(
        [sys.executable, "-c", LEAN_RECORDS], capture_output=True, text=True, check=True
    )

    assert done.stdout == "keywords only\n"
