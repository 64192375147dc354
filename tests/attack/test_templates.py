"""Hostile templates: none takes more than two seconds or 256 MiB, none leads out of its sandbox.

Each is checked and rendered in a process of its own kind, which tells time and memory; a template
that ends the process, or does not come back, is a finding as well.
"""

import json
import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.attack.further_templates import FURTHER
from tests.attack.hostile_templates import BY_HAND
from tests.attack.template_grammar import generated

from coloop.data.template import TemplateProgram, TemplateRow
from coloop.errors import UserCodeError
from coloop.spec.nodes import TemplateNode

ROOT = Path(__file__).resolve().parents[2]
MOST_SECONDS = 2.0
MOST_MEBIBYTES = 256.0
LAST_RESORT_SECONDS = 60.0
"""For a template that never comes back."""

SECRET_WORDS = ("<class", "<module", "<frame", "<code", "__globals__", "<built-in", "<bound method")

pytestmark = [
    pytest.mark.attack,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc"),
]


@dataclass
class Child:
    """A process that renders, started again when a template ends it."""

    seconds: float
    """The limit of computing that it renders under."""
    process: "subprocess.Popen[str] | None" = None

    def ask(self, source: str, *, is_chat: bool = False) -> dict[str, Any]:
        process = self.process or self.start()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"source": source, "is_chat": is_chat}) + "\n")
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], LAST_RESORT_SECONDS)
        line = process.stdout.readline() if ready else ""
        if line:
            told: dict[str, Any] = json.loads(line)
            return told
        self.end()
        how = f"the process ended ({process.returncode})" if ready else "it never came back"
        return {"seconds": float("inf"), "mebibytes": 0.0, "outcome": how, "text": ""}

    def start(self) -> "subprocess.Popen[str]":
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.attack.rendering_child", str(self.seconds)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(("engine", "."))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self.process

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


@pytest.fixture(scope="module")
def quick() -> Iterator[Child]:
    """Renders under a tenth of a second, so that what is done after the clock is what is seen."""
    child = Child(0.1)
    yield child
    child.end()


@pytest.fixture
def real() -> Iterator[Child]:
    child = Child(1.0)
    yield child
    child.end()


def broken(
    child: Child, sources: Sequence[str], *, seconds: float, is_chat: bool = False
) -> list[str]:
    """What breaks a limit, in words. What takes long is asked once more: on a busy machine anything
    does."""
    found = []
    for source in sources:
        told = child.ask(source, is_chat=is_chat)
        if told["seconds"] > seconds:
            told = child.ask(source, is_chat=is_chat)
        is_slow, is_large = told["seconds"] > seconds, told["mebibytes"] > MOST_MEBIBYTES
        is_raised = not told["outcome"].startswith(("rendered", "refused"))
        is_out = any(word in told["text"] for word in SECRET_WORDS)
        if is_slow or is_large or is_raised or is_out or "MemoryError" in told["outcome"]:
            found.append(f"{told} from {source[:300]!r}")
    return found


Record = Callable[[str, object], None]


def attack(
    child: Child,
    sources: Sequence[str],
    record: Record,
    *,
    seconds: float,
    is_chat: bool = False,
) -> None:
    found = broken(child, sources, seconds=seconds, is_chat=is_chat)
    record("tried", len(sources))
    record("through", len(found))
    assert not found


@pytest.mark.slow
def test_every_fifth_template_written_by_hand_breaks_no_limit(
    quick: Child, record_property: Record
) -> None:
    attack(quick, (*BY_HAND[::5], *FURTHER[::5]), record_property, seconds=1.5)


def test_some_templates_of_the_grammar_break_no_limit(
    quick: Child, record_property: Record
) -> None:
    attack(quick, generated(25, seed=1), record_property, seconds=1.0)


def in_a_chat(sources: Sequence[str]) -> list[str]:
    """The same as chat templates, some between the tags and with the functions that only these
    have."""
    ways = (
        "{0}",
        "{{% generation %}}{0}{{% endgeneration %}}",
        "{{% for m in messages %}}{0}{{% if loop.last %}}{{% break %}}{{% endif %}}{{% endfor %}}",
        "{{% macro f(x) %}}{0}{{% endmacro %}}{{{{ [f(1), messages] | tojson(indent=4) }}}}",
    )
    return [ways[place % len(ways)].format(source) for place, source in enumerate(sources)]


def test_some_chat_templates_break_no_limit(quick: Child, record_property: Record) -> None:
    sources = in_a_chat((*BY_HAND[1::20], *FURTHER[1::20], *generated(6, seed=3)))

    attack(quick, sources, record_property, seconds=1.5, is_chat=True)


@pytest.mark.parametrize(
    ("field", "text", "limit"),
    [
        ("text", "{% set a = 'x' * 999999 %}{{ a ~ a }}", "the limit is 1,000,000"),
        ("target", "{{ ([['a'] * 999] * 999) | tojson }}", "beyond 100,000 items"),
        ("columns.c", "{{ '%999999d' % 1 }}", "not a number of up to 4 digits"),
    ],
)
def test_a_refusal_names_node_row_field_and_limit(field: str, text: str, limit: str) -> None:
    name, _, column = field.partition(".")
    section = {"kind": "template", name: {column: text} if column else text}
    if name != "text":
        section["text"] = "{{ prompt }}"
    node = TemplateNode.model_validate(section)
    program = TemplateProgram.from_section(node, node="ask")

    with pytest.raises(UserCodeError) as caught:
        program.apply([TemplateRow(columns={"prompt": "p"})])

    assert f"ask, row 0: {field}: " in str(caught.value)
    assert limit in str(caught.value)


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_a_thousand_hostile_templates_break_no_limit(real: Child, record_property: Record) -> None:
    sources = [*BY_HAND, *FURTHER, *generated(1000, seed=2)]

    attack(real, sources, record_property, seconds=MOST_SECONDS)


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_nor_do_they_as_chat_templates_of_a_model(real: Child, record_property: Record) -> None:
    sources = in_a_chat((*BY_HAND, *FURTHER, *generated(1000, seed=4)))

    attack(real, sources, record_property, seconds=MOST_SECONDS, is_chat=True)
