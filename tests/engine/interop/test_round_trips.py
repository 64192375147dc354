"""Exports: what a framework reads again is the same loop, and what it cannot say is named."""

from contextlib import suppress

import pytest
from tests.engine.interop.test_public_configurations import configurations, text_of

from coloop.errors import ExportRefused
from coloop.interop.bring import import_text
from coloop.interop.take import MODULES, Parts, export_loop, told_apart
from coloop.spec import presets
from coloop.spec.graph import LoopSpec
from coloop.spec.io import parse


def spec_of(text: str) -> LoopSpec:
    spec = parse(text).spec
    assert spec is not None
    return spec


@pytest.mark.parametrize("framework", MODULES)
def test_public_configurations_come_back_as_they_were(framework: str) -> None:
    for row in configurations(framework):
        text, name = text_of(row)
        first = spec_of(import_text(text, name=name).text)
        try:
            exported = export_loop(first, framework)
        except ExportRefused:
            continue
        again = spec_of(import_text(exported.text, name=exported.name).text)
        assert told_apart(Parts(first), Parts(again)) == list(exported.unsaid), row["path"]
        assert exported.unsaid == (), row["path"]


@pytest.mark.parametrize("framework", MODULES)
def test_every_preset_is_exported_or_refused(framework: str) -> None:
    exported = []
    for name in (name for name in presets.loop_names() if "xH" in name or "xA" in name):
        spec = spec_of(presets.load_loop_text(name))
        with suppress(ExportRefused):
            exported.append(export_loop(spec, framework))
    assert exported


def test_what_verl_cannot_say_is_named() -> None:
    spec = spec_of(presets.load_loop_text("grpo-qwen2.5-7b-8xH100"))
    exported = export_loop(spec, "verl")

    assert "actor_rollout_ref.rollout.n=8" in exported.text
    assert "actor_rollout_ref.actor.clip_ratio_high=0.28" in exported.text
    assert "nodes.actor.algorithm.dual_clip: null here, 3.0 there" in exported.unsaid


@pytest.mark.parametrize(
    ("preset", "message"),
    [
        ("tango-qwen2.5-7b-8xH200", "one learner is expected"),
        ("search-r1-qwen2.5-7b-8xH100", "one dataset is expected"),
        ("openrlhf-async-agent-qwen3-4b-8xH100", "tools are programs of each framework"),
        ("dpo-from-file", "one teaching port is expected"),
    ],
)
def test_loops_without_a_form_are_refused(preset: str, message: str) -> None:
    with pytest.raises(ExportRefused, match=message):
        export_loop(spec_of(presets.load_loop_text(preset)), "verl")


def test_an_unknown_framework_is_refused() -> None:
    spec = spec_of(presets.load_loop_text("grpo-qwen2.5-7b-8xH100"))

    with pytest.raises(
        ExportRefused, match="there is no framework `x`; known are `verl`, `openrlhf`"
    ):
        export_loop(spec, "x")
