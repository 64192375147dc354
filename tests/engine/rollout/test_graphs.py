"""Steps that are recorded and replayed write what steps that are launched one by one write."""

import gc
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.engine.generating import generate
from tests.engine.numerics import forward_terms, near
from tests.engine.rollout.conftest import build
from tests.engine.rollout.tape import Counting, Rerun, Tape
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from coloop.workers.rollout import Generation, TorchEngine, graphs
from coloop.workers.rollout.graphs import (
    MOST_GRAPHS,
    CudaRecorder,
    Recorder,
    StepGraphs,
    recorder_of,
    step_size,
)

Models = Callable[[str], PreTrainedModel]
Ask = Callable[..., Generation]
Build = Callable[..., TorchEngine]

LOGITS = 10.0
"""Greatest logit of these models."""
GPU_WORKSPACE = 64 * 2**20
"""Most memory that matrix products of one stream keep."""
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "plain": [{}],
    "mixed": [
        {"temperature": 0.7},
        {"top_p": 0.8},
        {"temperature": 1.3, "top_k": 9},
        {"temperature": 0.0},
        {"stop": ("a", "01")},
        {"script": (9, 11, 13)},
    ],
    "greedy": [{"greedy": True}],
}


@pytest.fixture
def build_engine(
    models: Models, tokenizer: PreTrainedTokenizerFast, monkeypatch: pytest.MonkeyPatch
) -> Build:
    """Engines on a CPU whose cache and matrices lie as on a GPU."""
    monkeypatch.setattr(graphs, "LEAST_LENGTH", 16)
    monkeypatch.setattr("coloop.workers.cpu.lean_decoder.can_pack", lambda weights: False)

    def built(
        recorder: Recorder | None = None, model: PreTrainedModel | None = None, **options: Any
    ) -> TorchEngine:
        engine = TorchEngine(model or models("qwen3"), tokenizer, **options)
        decoder: Any = engine._decoder
        decoder._cache._is_tight = False
        if engine.dtype == torch.bfloat16:
            decoder._cache._mask_dtype, decoder._is_half = engine.dtype, False
        engine._schedule._graphs = None if recorder is None else StepGraphs(recorder)
        engine._schedule._steps_between_looks = 8
        return engine

    return built


def held(engine: TorchEngine) -> int:
    """Recordings that an engine holds."""
    assert engine._schedule._graphs is not None
    return len(engine._schedule._graphs._graphs)


@pytest.fixture
def requests(prompts: list[list[int]], ask: Ask) -> list[Generation]:
    """Rows that end one after the other."""
    return [
        ask(prompts[i % 7], id=str(i), seed=100 + i, max_new_tokens=9 + 4 * (i % 7))
        for i in range(20)
    ]


def with_settings(requests: list[Generation], settings: list[dict[str, Any]]) -> list[Generation]:
    return [replace(one, **settings[i % len(settings)]) for i, one in enumerate(requests)]


def alike(found: list[Generation], expected: list[Generation], terms: int) -> None:
    for one, other in zip(found, expected, strict=True):
        assert (one.token_ids, one.reason) == (other.token_ids, other.reason)
        assert one.log_probs == near(other.log_probs, terms=terms, scale=LOGITS)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("rows", "settings"),
    [(1, "mixed"), (3, "plain"), (9, "mixed"), (9, "greedy"), (20, "plain"), (20, "mixed")],
)
def test_replayed_steps_write_the_same(
    rows: int,
    settings: str,
    build_engine: Build,
    models: Models,
    requests: list[Generation],
) -> None:
    asked = with_settings(requests if rows > 1 else requests[:4], SETTINGS[settings])
    tape = Tape()
    engine = build_engine(tape, max_num_seqs=rows)

    found = [generate(engine, asked) for _ in range(2)]

    in_same_sizes = build_engine(Rerun(), max_num_seqs=rows)
    assert found == [generate(in_same_sizes, asked) for _ in range(2)]
    alike(
        found[0],
        generate(build_engine(max_num_seqs=rows), asked),
        forward_terms(models("qwen3"), 80),
    )
    assert tape.replayed > tape.recorded > 0


@pytest.mark.slow
def test_recordings_serve_the_next_batch_and_are_as_few_as_the_sizes(
    build_engine: Build, requests: list[Generation]
) -> None:
    tape = Tape()
    engine = build_engine(tape, max_num_seqs=9)
    generate(engine, requests)
    sizes = {
        step_size(rows, length, most_rows=9, most_length=engine._schedule._room[1])
        for rows in range(1, 10)
        for length in range(1, engine._schedule._room[1] + 1)
    }
    once = tape.recorded

    for first in range(3):
        generate(engine, requests[first:])

    assert once <= tape.recorded == held(engine) <= len(sizes)
    assert tape.released == 0


@pytest.mark.slow
def test_texts_that_join_kept_ones_and_more_slots_write_the_same(
    build_engine: Build, prompts: list[list[int]], ask: Ask
) -> None:
    def written(recorder: Recorder) -> list[Generation]:
        engine = build_engine(recorder, max_num_seqs=16)
        stems = [ask(prompts[i], seed=i, max_new_tokens=9, keep=True) for i in range(3)]
        firsts = generate(engine, stems)
        found: list[Generation] = []
        for number in range(40):
            if number < 12:
                one, first = stems[number % 3], firsts[number % 3]
                said = [*one.prompt_ids, *first.token_ids, *range(20, 20 + 3 * number)]
                engine.submit(ask(said, seed=number, continues=first.ticket, max_new_tokens=20))
            if number == 5:
                engine.score([[5] * 120])  # its table of angles takes the place of the other
            found += engine.step()
        while engine.unfinished:
            found += engine.step()
        return found

    tape = Tape()
    assert written(tape) == written(Rerun())
    assert tape.replayed
    assert tape.released  # room grew


def score_a_long_text(engine: TorchEngine, ask: Ask) -> None:
    engine.score([[5] * 300])  # the table of angles is computed anew


def write_with_settings(engine: TorchEngine, ask: Ask) -> None:
    generate(engine, [ask([5], temperature=0.5, max_new_tokens=30)])


def write_behind_a_long_prompt(engine: TorchEngine, ask: Ask) -> None:
    generate(engine, [ask([5] * 90, max_new_tokens=30)])


def write_many_rows(engine: TorchEngine, ask: Ask) -> None:
    generate(engine, [ask([5], max_new_tokens=3) for _ in range(9)])


@pytest.mark.slow
@pytest.mark.parametrize(
    "between",
    [score_a_long_text, write_with_settings, write_behind_a_long_prompt, write_many_rows],
)
def test_no_recording_outlives_the_memory_that_it_knows(
    between: Callable[[TorchEngine, Ask], None], build_engine: Build, ask: Ask
) -> None:
    tape = Tape()
    engine = build_engine(tape)
    asked = [ask([5, 6], seed=i, max_new_tokens=30) for i in range(3)]
    first = generate(engine, asked)
    replayed = tape.replayed

    between(engine, ask)

    assert generate(engine, asked) == first
    assert tape.replayed > replayed


def test_new_weights_are_those_that_replays_read(
    build_engine: Build, models: Models, requests: list[Generation]
) -> None:
    changed = {name: one.detach() * 1.1 for name, one in models("qwen3").named_parameters()}

    def written(recorder: Recorder) -> list[Generation]:
        engine = build_engine(recorder, max_num_seqs=8)
        for one in requests:
            engine.submit(replace(one, on_load="resume"))
        found = [row for _ in range(11) for row in engine.step()]
        engine.load_weights(changed.items(), 1)
        while engine.unfinished:
            found += engine.step()
        return found

    tape = Tape()
    found = written(tape)

    assert found == written(Rerun())
    assert any(row.versions[1:] for row in found)
    assert tape.released == 0


@pytest.mark.slow
def test_asleep_no_recording_is_held(
    build_engine: Build, models: Models, requests: list[Generation]
) -> None:
    tape = Tape()
    engine = build_engine(tape, max_num_seqs=8)
    before = generate(engine, requests)
    recorded = held(engine)

    engine.sleep()
    asleep = held(engine)
    engine._aside.put(engine._decoder.held())
    engine.wake()

    assert generate(engine, requests) == before
    assert recorded > asleep == 0
    engine.limit_concurrency(3)
    assert held(engine) == 0
    alike(generate(engine, requests), before, forward_terms(models("qwen3"), 80))


@pytest.mark.slow
def test_a_step_is_one_launch(
    build_engine: Build, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = build("qwen2", num_hidden_layers=24)

    def launched(recorder: Tape | None, counting: Counting) -> list[int]:
        engine = build_engine(recorder, model, dtype=torch.bfloat16)
        monkeypatch.setattr(engine._decoder, "_is_on_cpu", False)
        for number in range(4):
            engine.submit(ask([5, 6, 7, 8], seed=number, max_new_tokens=40))
        engine.step()
        counts = []
        for _ in range(6):
            with counting:
                before = counting.launched
                engine.step()
            counts.append(counting.launched - before)
        return counts[3:]

    counting = Counting()
    assert min(launched(None, counting)) > 500
    assert launched(Tape(counting), counting) == [1, 1, 1]


def test_steps_are_recorded_where_the_decoder_and_who_builds_it_allow(
    models: Models, tokenizer: PreTrainedTokenizerFast, monkeypatch: pytest.MonkeyPatch
) -> None:
    def records(family: str, **options: Any) -> bool:
        return TorchEngine(models(family), tokenizer, **options)._schedule._graphs is not None

    assert not records("qwen3")
    monkeypatch.setattr("coloop.workers.rollout.torch_engine.recorder_of", lambda device: Tape())
    assert records("qwen3")
    assert not records("qwen3", enforce_eager=True)
    assert not records("gpt2")


def test_what_cannot_be_recorded_is_done_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    class Refusing(Tape):
        def record(self, work: graphs.Work) -> graphs.Work:
            raise RuntimeError("operation not permitted")

    done: list[int] = []
    steps = StepGraphs(Refusing())

    for number in range(5):
        steps.run((1, 16), lambda number=number: done.append(number))  # type: ignore[misc]

    assert done == [0, 1, 2, 3, 4]
    assert [record.message for record in caplog.records] == [
        "this engine generates without CUDA graphs, which is slower: operation not permitted"
    ]


def test_where_memory_is_short_the_step_fails() -> None:
    class Short(Tape):
        def record(self, work: graphs.Work) -> graphs.Work:
            raise torch.OutOfMemoryError("out of memory")

    recorder = Short()
    steps = StepGraphs(recorder)
    steps.run((1, 16), lambda: None)

    with pytest.raises(torch.OutOfMemoryError):
        steps.run((1, 16), lambda: None)

    assert recorder.released == 1


def test_graphs_share_a_pool_until_they_go_and_a_failed_capture_leaves_its_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pools: list[Any] = []
    streams: list[Any] = ["main"]

    @contextmanager
    def capture(graph: Any, *, pool: Any, stream: Any, capture_error_mode: str) -> Iterator[None]:
        assert capture_error_mode == "thread_local"
        pools.append(pool)
        streams.append(stream)  # and stays there, as where a capture cannot be ended
        yield

    waiting = SimpleNamespace(synchronize=lambda: None)
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: "side")
    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: SimpleNamespace(replay="replay"))
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: (0, len(pools)))
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: waiting)
    monkeypatch.setattr(torch.cuda, "set_stream", streams.append)
    monkeypatch.setattr(torch.cuda, "graph", capture)
    recorder: Any = CudaRecorder(torch.device("cuda"))

    assert [recorder.record(lambda: None) for _ in range(2)] == ["replay", "replay"]
    recorder.let_go()
    with pytest.raises(RuntimeError, match="not permitted"):
        recorder.record(_not_permitted)

    assert pools == [(0, 0), (0, 0), (0, 2)]
    assert streams[-2:] == ["side", waiting]


def _not_permitted() -> None:
    raise RuntimeError("operation not permitted")


def test_nothing_is_recorded_where_there_is_no_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", None)

    assert recorder_of(torch.device("cpu")) is None
    assert recorder_of(torch.device("cuda")) is None


def test_no_more_recordings_are_held_than_may_be() -> None:
    done: list[int] = []
    tape = Tape()
    steps = StepGraphs(tape)

    for length in range(MOST_GRAPHS + 3):
        for _ in range(3):
            steps.run((1, length), lambda: done.append(1))

    assert tape.recorded == MOST_GRAPHS + 3
    assert len(steps._graphs) == 3


def test_sizes_are_a_quarter_apart() -> None:
    sizes = [step_size(rows, rows, most_rows=200, most_length=4096)[0] for rows in range(1, 201)]

    assert sorted(set(sizes)) == [
        *(1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112),
        *(128, 160, 192, 200),
    ]
    assert all(size >= rows for rows, size in enumerate(sizes, 1))
    assert step_size(1, 5, most_rows=4, most_length=4096) == (1, graphs.LEAST_LENGTH)
    assert step_size(1, 129, most_rows=4, most_length=140) == (1, 140)


needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("settings", SETTINGS)
def test_on_a_gpu_replayed_graphs_write_the_same(
    settings: str,
    models: Models,
    tokenizer: PreTrainedTokenizerFast,
    requests: list[Generation],
) -> None:
    model = models("qwen3")
    asked = with_settings(requests, SETTINGS[settings])
    engine = TorchEngine(model, tokenizer, device="cuda", max_num_seqs=9)

    found = [generate(engine, asked) for _ in range(2)]

    alone = TorchEngine(model, tokenizer, device="cuda", max_num_seqs=9, enforce_eager=True)
    expected = generate(alone, asked)
    assert held(engine)
    for rows in found:
        alike(rows, expected, forward_terms(model, 80))


@pytest.mark.gpu
@needs_gpu
def test_on_a_gpu_graphs_are_recorded_while_another_thread_asks_for_free_memory(
    models: Models, tokenizer: PreTrainedTokenizerFast, requests: list[Generation]
) -> None:
    engine = TorchEngine(models("qwen3"), tokenizer, device="cuda", max_num_seqs=9)
    is_over = threading.Event()

    def ask_on() -> int:
        asked = 0
        while not is_over.is_set():
            torch.cuda.mem_get_info()
            asked += 1
        return asked

    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(ask_on)
        generate(engine, requests)
        is_over.set()

    assert asking.result()
    assert held(engine)


@pytest.mark.gpu
@needs_gpu
def test_on_a_gpu_the_memory_of_graphs_goes_with_sleep(
    tokenizer: PreTrainedTokenizerFast, ask: Ask
) -> None:
    model = build("qwen3", vocab_size=2**16)
    asked = [ask([5, 6], seed=i, max_new_tokens=20) for i in range(256)]
    gc.collect()
    torch.cuda.empty_cache()
    others = torch.cuda.memory_reserved()
    engine = TorchEngine(model, tokenizer, device="cuda")
    before = generate(engine, asked)
    awake = torch.cuda.memory_reserved()

    engine.sleep()
    torch.cuda.empty_cache()
    asleep = torch.cuda.memory_reserved()
    engine.wake()

    logits = 4 * 256 * 2**16
    assert awake - asleep > 2 * logits
    assert asleep - others < logits + 2 * GPU_WORKSPACE
    after = generate(engine, asked)
    assert [row.token_ids for row in after] == [row.token_ids for row in before]
