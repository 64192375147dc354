"""A model of which nothing is known has no numbers, and what would make it known is said."""

import json

import pytest
from tests.engine.estimate.conftest import stage_of

from coloop.plan.cost import estimate, explain
from coloop.plan.cost.solving import fit, solve
from coloop.plan.cost.ways import ways_of
from coloop.plan.settings import counted
from coloop.plan.settings.architecture import (
    UnknownArchitecture,
    count_parameters,
    kv_bytes_per_token,
)
from coloop.plan.settings.facts import architecture_of
from coloop.spec import presets
from coloop.spec.model import PretrainedModel
from coloop.validate import validate


def _misspelt(grpo, path="Qwen/Qwen2.5-7B-Instuct", **changes):
    return grpo(nodes={"actor": {"model": {"path": path}}}, **changes)


def test_its_numbers_are_null_with_a_reason(grpo):
    document = json.loads(estimate(_misspelt(grpo)).model_dump_json())

    assert document["step_seconds"] is None
    assert document["bottleneck"] == ""
    gpu = document["gpus"][0]
    assert gpu["peak_bytes"] is None
    assert gpu["fits"] is None
    assert "actor" in gpu["reason"]
    by_stage = {stage["stage"]: stage for stage in document["stages"]}
    for name in ("actor.generate", "actor.learn", "actor.sync", "start.score"):
        assert by_stage[name]["seconds"] is None, name
        assert "not known" in by_stage[name]["reason"]
    assert by_stage["exact.score"]["seconds"] > 0


def test_it_is_told_once_with_all_that_rests_on_it(grpo):
    [one] = estimate(_misspelt(grpo)).unknown

    assert (one.node, one.field, one.found) == ("actor", "model.path", "Qwen/Qwen2.5-7B-Instuct")
    assert set(one.nodes) == {"actor", "start"}
    assert one.suggestions[0] == "Qwen/Qwen2.5-7B-Instruct"


def test_a_loop_with_one_has_no_time_but_other_pools_have_a_peak(grpo):
    judge = {
        "kind": "reward",
        "pool": "aside",
        "source": {"type": "model", "name": None},
        "model": {"type": "pretrained", "path": "nobody/nothing"},
    }
    pools = {"main": {"gpus": 4}, "aside": {"gpus": 4}}
    spec = grpo(nodes={"exact": judge}, hardware={"preset": "8xH100", "pools": pools})
    found = estimate(spec)

    peaks = {gpu.pool: gpu.peak_bytes for gpu in found.gpus}
    assert peaks["aside"] is None
    assert peaks["main"] > 2**30
    assert stage_of(found, "actor.learn").seconds > 0
    assert stage_of(found, "exact.score").seconds is None
    assert found.step_seconds is None
    assert explain(spec).total_seconds is None


def test_the_check_warns_and_offers_the_name_that_was_meant(grpo):
    [found] = [one for one in validate(_misspelt(grpo)).diagnostics if one.code == "memory.unknown"]

    assert not found.is_error
    assert found.path == "nodes.actor.model.path"
    assert "config.json" in found.hint
    assert "Qwen/Qwen2.5-7B-Instruct" in found.hint
    assert found.fixes[0].changes[0].value == "Qwen/Qwen2.5-7B-Instruct"


def test_another_name_altogether_is_offered_nothing_to_click(grpo):
    spec = _misspelt(grpo, "openai/gpt-oss-20b")
    [found] = [one for one in validate(spec).diagnostics if one.code == "memory.unknown"]

    assert found.fixes == ()
    assert "config.json" in found.hint


def test_a_solver_does_not_try(grpo):
    spec = _misspelt(grpo)
    for found in (fit(spec), solve(spec)):
        assert not found.fits
        assert found.changes == ()
    assert ways_of(spec, solve(spec), ()) == ()


def test_known_models_are_not_warned_of(grpo):
    codes = {one.code for one in validate(grpo()).diagnostics}

    assert "memory.unknown" not in codes
    assert "memory.guessed" not in codes
    assert estimate(grpo()).unknown == ()
    assert estimate(grpo()).guessed == ()


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("Qwen/Qwen2.5-7B-Instuct", "Qwen/Qwen2.5-7B-Instruct"),
        ("qwen/qwen3-8bb", "Qwen/Qwen3-8B"),
        ("unsloth/Qwen3-4B-Instruct-2507", "Qwen/Qwen3-4B-Instruct-2507"),
        ("lama-3.1-8b", "llama-3.1-8b"),
    ],
)
def test_the_nearest_name_comes_first(name, near):
    assert presets.like_models(name)[0] == near


# Folders


def _folder(tmp_path, config):
    (tmp_path / "mine").mkdir()
    text = config if isinstance(config, str) else json.dumps(config)
    (tmp_path / "mine" / "config.json").write_text(text, encoding="utf-8")
    return architecture_of(PretrainedModel(type="pretrained", path="mine"), tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "cannot be read"), ("[]", "is not a mapping"), ("{}", "no `model_type`")],
)
def test_a_folder_that_cannot_be_read_says_why(tmp_path, text, said):
    with pytest.raises(UnknownArchitecture, match=said):
        _folder(tmp_path, text)


PLAIN = {
    "model_type": "nobodys",
    "vocab_size": 1000,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}


def _unbuildable(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(counted, "_built", lambda config: '{"error": "KeyError: nobodys"}')
    counted._counted.cache_clear()


def test_a_plain_decoder_of_an_unknown_type_is_a_guess(grpo, tmp_path, monkeypatch):
    _unbuildable(monkeypatch, tmp_path)
    # transformers knows the type, and cannot build this one.
    assert not _folder(tmp_path, PLAIN | {"model_type": "persimmon"}).is_exact

    spec = grpo(nodes={"actor": {"model": {"path": "mine"}}})
    found = estimate(spec, root=tmp_path)
    told = {one.code: one for one in validate(spec, root=tmp_path).diagnostics}
    assert {one.node for one in found.guessed} == {"actor", "start"}
    assert found.step_seconds is not None
    assert told["memory.guessed"].node in ("actor", "start")


@pytest.mark.parametrize("key", ["moe_num_experts", "mamba_d_ssm", "kv_lora_rank"])
def test_a_mixture_of_an_unknown_type_is_not_guessed(tmp_path, monkeypatch, key):
    _unbuildable(monkeypatch, tmp_path)

    with pytest.raises(UnknownArchitecture, match="cannot be built"):
        _folder(tmp_path, PLAIN | {key: 8})


def test_what_was_counted_is_kept_on_the_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    asked = []

    def built(config):
        asked.append(config)
        return json.dumps(COUNTED)

    monkeypatch.setattr(counted, "_built", built)
    counted._counted.cache_clear()
    first = _folder(tmp_path, {"model_type": "gpt2"})
    counted._counted.cache_clear()
    again = architecture_of(PretrainedModel(type="pretrained", path="mine"), tmp_path)

    assert len(asked) == 1
    assert first == again
    assert count_parameters(first).total == 124_439_808
    assert count_parameters(first, "score").total == 124_439_808 + 768
    assert kv_bytes_per_token(first) == 2 * 12 * 12 * 64 * 2


COUNTED = {
    "model_type": "gpt2",
    "total": 124_439_808,
    "active": 124_439_808,
    "embedding": 50257 * 768,
    "head": 0,
    "layer": 7_087_872,
    "vocab_size": 50257,
    "hidden_size": 768,
    "layers": 12,
    "heads": 12,
    "kv_heads": 12,
    "head_dim": 64,
    "ffn": 3072,
    "qkv_bias": True,
    "qk_norm": False,
    "norms": 2,
    "max_positions": 1024,
    "experts": None,
    "tables": 1024 * 768,
    "caches": [{"layers": 12, "heads": 12, "width": 2 * 12 * 64, "window": None}],
}


def test_without_transformers_the_message_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(counted, "_built", lambda config: '{"missing": "torch"}')
    counted._counted.cache_clear()

    with pytest.raises(UnknownArchitecture, match=r"pip install 'coloop\[engine\]'"):
        _folder(tmp_path, {"model_type": "mamba2"})


def test_a_type_that_transformers_does_not_have_is_refused_in_words(tmp_path, monkeypatch):
    _unbuildable(monkeypatch, tmp_path)

    with pytest.raises(UnknownArchitecture, match="has no causal language model of type `nobodys`"):
        _folder(tmp_path, {"model_type": "nobodys"})
