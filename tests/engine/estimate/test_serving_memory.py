"""The cache of a rollout engine against the logs of real ones."""

import pytest
from tests.engine.estimate.conftest import engine_of

from coloop.plan.settings.architecture import architecture_from_config
from coloop.plan.settings.serving import serve_from_budget, serve_static
from coloop.spec import presets

GIB = 2**30


def _engine(model, **options):
    return engine_of(architecture_from_config(presets.architecture(model)), **options)


@pytest.mark.parametrize(
    ("model", "tensor_parallel", "budget_gib", "sequences", "cache_gib"),
    [
        ("qwen3-0.6b", 1, 0.9 * 79.18, 1024, 64.45),
        ("qwen3-32b", 1, 0.9 * 79.18, 1024, 4.45),
        ("qwen3-32b", 2, 0.9 * 79.18, 1024, 34.49),
        ("qwen2.5-32b", 2, 0.9 * 44.42, 256, 7.71),
    ],
)
def test_the_cache_is_what_the_budget_leaves(
    model, tensor_parallel, budget_gib, sequences, cache_gib
):
    engine = _engine(model, sequences=sequences, tensor_parallel=tensor_parallel)

    serving = serve_from_budget(engine, budget_gib * GIB)

    assert serving.kv_cache / GIB == pytest.approx(cache_gib, rel=0.04)


def test_the_cache_is_counted_in_whole_blocks():
    serving = serve_from_budget(_engine("qwen3-0.6b"), 40 * GIB)

    assert serving.tokens % 16 == 0
    assert serving.tokens == pytest.approx(serving.kv_cache / 114_688, abs=16)


def test_weights_beyond_the_budget_leave_nothing():
    serving = serve_from_budget(_engine("qwen2.5-72b"), 0.9 * 79.18 * GIB)

    assert (serving.kv_cache, serving.tokens, serving.sequences) == (0.0, 0, 0)


def test_the_static_cache_holds_every_sequence_at_full_length():
    engine = _engine("tiny-qwen3", length=64, sequences=32)
    serving = serve_static(engine, prefill_tokens=32 * 16, has_graphs=False)

    assert serving.tokens == 32 * 64
    assert serving.kv_cache == 32 * 64 * 512
    assert serving.sequences == 32


def test_graphs_hold_what_one_step_computes_beside_the_rest():
    engine = _engine("qwen3-0.6b", length=64, sequences=32)
    found = [serve_static(engine, prefill_tokens=512, has_graphs=has) for has in (False, True)]

    assert found[1].workspace - found[0].workspace == 32 * engine.weights.arch.vocab_size * (
        2 + 4 + 4
    )
