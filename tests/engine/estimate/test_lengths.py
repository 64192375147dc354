"""How long completions are expected to be, and how long it takes until the longest ends."""

import math

import pytest
from tests.engine.estimate.conftest import build, engine_of, stage_of

from coloop.plan.cost import bands, explain
from coloop.plan.settings.architecture import architecture_from_config
from coloop.plan.settings.measured import add_measured, lengths_as, measured_here
from coloop.plan.settings.serving import SPREAD, lengths_of_rows, writing_seconds
from coloop.plan.settings.throughput import Clock
from coloop.plan.unrolled import Unrolled
from coloop.spec import presets
from coloop.spec.rollout import Rollout
from coloop.spec.table_sizes import REASONING, TableSize, mean_written

H100 = presets.gpu_facts("H100-80GB")


@pytest.mark.parametrize(
    ("most", "mean"),
    [(16, 8), (64, 32), (512, 2 * 512**0.68), (1024, 222.9), (20_480, 1708), (28_672, 2148)],
)
def test_a_mean_grows_as_a_power_of_the_maximum(most, mean):
    assert mean_written(Rollout(max_new_tokens=most)) == pytest.approx(mean, rel=1e-3)


def test_models_that_reason_write_as_much_as_they_may_up_to_some_thousand_tokens():
    """E[min(X, c)] of a log-normal X with median 4,500 and spread 1.2: for c = 4,500,
    4500 exp(0.72) Phi(-1.2) + 4500 / 2."""
    below = 4500 * math.exp(0.72) * (1 - math.erf(1.2 / math.sqrt(2))) / 2

    found = mean_written(Rollout(max_new_tokens=4500), reasons=True)
    assert found == pytest.approx(below + 2250)
    assert mean_written(Rollout(max_new_tokens=3946), reasons=True) / 3946 == pytest.approx(
        0.77, abs=0.04
    )


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("Qwen/Qwen3-8B", True),
        ("qwen3-30b-a3b", True),
        ("Qwen/Qwen3-30B-A3B-Base", False),
        ("Qwen/Qwen3-4B-Instruct-2507", False),
        ("Qwen/Qwen3-4B-Thinking-2507", True),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", True),
        ("Qwen/Qwen2.5-7B-Instruct", False),
        ("meta-llama/Llama-3.1-8B-Instruct", False),
    ],
)
def test_names_say_which_models_reason(name, is_one):
    assert bool(REASONING.search(name)) == is_one


def test_what_the_loop_states_is_neither_assumed_nor_noted():
    said = explain(build(nodes={"actor": {"rollout": {"expected_tokens": 300}}}))
    assumed = explain(build())

    def noted(found):
        return [note.message for note in found.notes if note.field == "rollout.expected_tokens"]

    assert noted(said) == []
    assert noted(assumed) == [
        "completions are assumed to have 223 of 1024 tokens in the mean, within 89 and 557: "
        "`expected_tokens` states it"
    ]
    assert (said.time_band, assumed.time_band) == (bands.STEP, bands.STEP_ASSUMED)


def test_an_earlier_run_says_how_long_completions_are(tmp_path, monkeypatch):
    monkeypatch.setenv("COLOOP_MEASURED", str(tmp_path / "measured.json"))
    add_measured(measured_here(), [(lengths_as("grpo", "actor", 1024), 2.0)])
    found = explain(build())

    written = stage_of(found.estimate, "actor.generate")
    assert written.seconds * written.tokens_per_second == pytest.approx(
        128 * 8 * 2 * 2 * 1024**0.68
    )
    said = "completions have 446 of 1024 tokens in the mean, as in an earlier run"
    assert said in [note.message for note in found.notes]
    assert found.time_band == bands.STEP


# Until the longest row ends


@pytest.mark.parametrize(("mean", "most"), [(153, 1024), (910, 3946), (3050, 3946), (2000, 28_672)])
def test_lengths_of_rows_have_the_mean_and_end_at_the_maximum(mean, most):
    lengths = lengths_of_rows(mean, most, 512)
    tokens, shares = zip(*lengths, strict=True)

    assert sum(shares) == pytest.approx(1)
    assert sum(t * s for t, s in lengths) == pytest.approx(mean, rel=0.15)
    assert list(tokens) == sorted(tokens)
    assert tokens[-1] <= most


def test_the_longest_of_few_rows_is_shorter():
    longest = [lengths_of_rows(200, 100_000, rows)[-1][0] for rows in (8, 512)]

    assert longest[1] / longest[0] == pytest.approx(
        math.exp(SPREAD * (math.sqrt(2 * math.log(512)) - math.sqrt(2 * math.log(8))))
    )


def test_rows_of_one_length_take_a_step_for_each_token():
    """Llama-3.1-8B, 64 rows of 1,000 tokens after a prompt of 200 on one H100: 2 bytes of each
    decoded parameter and 131,072 of each token in the cache."""
    arch = architecture_from_config(presets.architecture("llama-3.1-8b"))
    rows = TableSize(rows=64, prompt=200, written=1000, written_max=1000)
    seconds, bound = writing_seconds(engine_of(arch), H100, rows, 64)

    decoded = 8_030_261_248 - 128_256 * 4096
    share = 0.85 - (0.85 - 0.73) / 64
    memory = (2 * decoded + 64 * (200 + 500) * 131_072) / (share * 3350e9)
    compute = 64 * 2 * 8_030_261_248 / (0.40 * 989e12)
    prompt = 200 * 2 * 8_030_261_248 / (0.55 * 989e12)
    step = memory + 0.75 * compute + 0.0032
    assert seconds == pytest.approx(1000 * step + 64 * prompt)
    assert bound == "bandwidth"


def test_one_long_row_holds_up_the_others():
    arch = architecture_from_config(presets.architecture("llama-3.1-8b"))
    even = TableSize(rows=512, prompt=200, written=1000, written_max=1000)
    uneven = TableSize(rows=512, prompt=200, written=1000, written_max=16_000)

    one, other = (writing_seconds(engine_of(arch), H100, rows, 512)[0] for rows in (even, uneven))
    assert other > 2 * one
    assert other > 16_000 * 0.0032


def test_an_engine_that_slept_brings_its_weights_back_from_host_memory():
    """15.2 GB out and back at 20 GB/s; the reference and the learner have the GPUs meanwhile."""
    settings = Unrolled(build()).settings()
    clock = Clock(settings.survey, settings.memory)
    place = ("actor", "main")

    settings.memory.sleeps[place] = "weights"
    asleep = clock.time("actor.generate").seconds
    settings.memory.sleeps[place] = None
    awake = clock.time("actor.generate").seconds
    assert asleep - awake == pytest.approx(2 * 2 * 7_615_616_512 / 20e9)
