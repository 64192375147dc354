"""What a sleeping engine gives back, and what comes back with it."""

import ctypes
import platform
from collections.abc import Callable, Iterator

import psutil
import pytest
import torch
from tests.engine.generating import generate
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from coloop.errors import WeightsNotUpdated
from coloop.workers.rollout import Generation, TorchEngine
from coloop.workers.rollout.torch_engine import Aside

MIB = 2**20
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Settings of glibc, by their numbers."""
Models = Callable[[str], PreTrainedModel]
Ask = Callable[..., Generation]


@pytest.fixture
def engine(models: Models, tokenizer: PreTrainedTokenizerFast) -> TorchEngine:
    return TorchEngine(models("qwen3"), tokenizer)


def weights_of(engine: TorchEngine) -> Iterator[Tensor]:
    return engine._decoder.held()


@pytest.fixture
def keeping() -> Iterator[None]:
    """A process that keeps what it frees, as those of hosts do."""
    libc = ctypes.CDLL(None)
    libc.mallopt(M_MMAP_THRESHOLD, 2**30)
    libc.mallopt(M_TRIM_THRESHOLD, 2**30)
    yield
    libc.mallopt(M_MMAP_THRESHOLD, 128 * 2**10)
    libc.mallopt(M_TRIM_THRESHOLD, 128 * 2**10)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="tells glibc what to keep")
def test_asleep_it_has_given_its_cache_back_to_the_system(
    keeping: None, engine: TorchEngine, ask: Ask
) -> None:
    rows = 256 * MIB // (engine._decoder.bytes_per_token * 128)
    before = generate(engine, [ask([5, 6, 7], max_new_tokens=9)])[0]
    process = psutil.Process()
    engine._decoder.reserve(rows, 128)
    engine._decoder.admit(0, [[5] * 100], [rows])  # memory counts from the first time it is written
    full = process.memory_info().rss

    engine.sleep()
    empty = process.memory_info().rss
    engine.wake()

    assert full - empty > 128 * MIB
    assert generate(engine, [ask([5, 6, 7], max_new_tokens=9)])[0].token_ids == before.token_ids


def test_weights_that_were_put_aside_come_back_bit_for_bit(engine: TorchEngine, ask: Ask) -> None:
    whole, aside = engine.fingerprint(), Aside()
    before = generate(engine, [ask([5, 6, 7], max_new_tokens=9)])[0]

    aside.put(weights_of(engine))
    aside.put(weights_of(engine))
    sizes = [weight.untyped_storage().nbytes() for weight in weights_of(engine)]
    aside.bring_back()
    aside.bring_back()

    assert set(sizes) == {0}
    assert engine.fingerprint() == whole
    assert generate(engine, [ask([5, 6, 7], max_new_tokens=9)])[0] == before


def test_where_memory_is_short_the_rest_comes_back_later(
    engine: TorchEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, aside = engine.fingerprint(), Aside()
    aside.put(weights_of(engine))
    resize, calls = torch.UntypedStorage.resize_, iter(range(100))

    def short(storage: torch.UntypedStorage, size: int) -> torch.UntypedStorage:
        if next(calls) == 3:
            raise torch.OutOfMemoryError("out of memory")
        return resize(storage, size)

    monkeypatch.setattr(torch.UntypedStorage, "resize_", short)
    with pytest.raises(torch.OutOfMemoryError):
        aside.bring_back()
    aside.bring_back()

    assert engine.fingerprint() == whole


def test_new_weights_take_the_place_of_those_that_were_put_aside(
    engine: TorchEngine, models: Models
) -> None:
    whole = engine.fingerprint()
    engine._aside.put(weights_of(engine))

    engine.load_weights(models("qwen3").named_parameters(), 3)
    engine.wake()

    assert (engine.version, engine.fingerprint()) == (3, whole)


def test_where_new_weights_break_off_it_is_awake_and_wants_them_again(
    engine: TorchEngine, models: Models
) -> None:
    engine._aside.put(weights_of(engine))

    with pytest.raises(WeightsNotUpdated, match="did not receive"):
        engine.load_weights(list(models("qwen3").named_parameters())[:2], 3)
    engine.wake()
    engine.load_weights(models("qwen3").named_parameters(), 4)

    assert engine.version == 4


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
def test_on_a_gpu_weights_and_cache_wait_in_the_memory_of_the_host(
    models: Models, tokenizer: PreTrainedTokenizerFast, ask: Ask
) -> None:
    engine = TorchEngine(models("qwen3"), tokenizer, device="cuda")
    before = generate(engine, [ask([5, 6, 7], max_new_tokens=9)])[0]
    weights = sum(weight.nbytes for weight in weights_of(engine))
    awake = torch.cuda.memory_allocated()

    engine.sleep()
    asleep = torch.cuda.memory_allocated()
    engine.wake()

    assert awake - asleep >= weights
    assert generate(engine, [ask([5, 6, 7], max_new_tokens=9)])[0].token_ids == before.token_ids
