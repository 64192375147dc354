"""What ranks hold at once while weights that lie over them are handed on and saved: buckets of the
model beside their own parts, never the whole of it."""

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.engine.memory_watch import MemoryWatch, ResizedWatch
from tests.engine.training.conftest import random_load, tiny_model, training_section
from tests.engine.training.processes import on_ranks
from torch import Tensor

from coloop.models import LoadedModel, character_tokenizer, load_weights
from coloop.models.waiting import outline_of
from coloop.plan import weight_buckets
from coloop.spec.dtypes import ON_GPU, trained_dtypes
from coloop.workers.fingerprint import fingerprint
from coloop.workers.trainer import Trainer
from coloop.workers.training import Ranks, leave
from coloop.workers.training.forward import ForwardOptions, TokenModel
from coloop.workers.training.fsdp2 import Fsdp2Backend
from coloop.workers.training.shards import local_of, spread
from coloop.workers.weights import HeldWeights

MIB = 2**20
PORTION = MIB
COUNTING = 3 * MIB
"""What a fingerprint is counted in: a few times 64 Ki words."""
BEHIND = 2 * PORTION
"""gloo's own thread may let go of a portion a little later."""
SIZES = {
    "hidden_size": 256,
    "intermediate_size": 1024,
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
}


def home_of(ranks: Ranks) -> Trainer:
    training = training_section(backend="fsdp2", lr=0.1)
    model, dtypes = tiny_model(**SIZES), trained_dtypes(training)
    outline = LoadedModel(model=outline_of(model), tokenizer=character_tokenizer())
    backend = Fsdp2Backend(model, training, group="actor", dtypes=dtypes, ranks=ranks)
    weights = HeldWeights(name="actor", loaded=outline, dtypes=dtypes, ranks=ranks, backend=backend)
    backend.update([random_load("grpo", size=4)], training, seed=0)
    update: Any = None  # what the plan decides is not asked here
    return Trainer(weights=weights, backend=backend, update=update)


def use(ranks: Ranks, folder: str) -> dict[str, Any]:
    """Bytes at once in a sync, in its proof, in a save of the trainer's state, and in both."""
    weight_buckets.CPU_BYTES = PORTION  # type: ignore[misc]
    with ResizedWatch() as passes:  # of what a pass gathers memory is there before
        home = home_of(ranks)
    weights = home.weights
    named = {name: 4 * one.numel() for name, one in weights.loaded.model.named_parameters()}
    sizes = [*named.values()]
    found: dict[str, Any] = {
        "all": sum(sizes),
        "block": sum(size for name, size in named.items() if ".layers.0." in name),
        "ends": sum(size for name, size in named.items() if ".layers." not in name),
        "bound": weight_buckets.gather_buffer_bytes(max(sizes), sum(sizes), "cpu", ranks.size),
    }
    whole = {name: one.clone() for name, one in weights.named()}
    found["expected"] = fingerprint(whole.items(), torch.bfloat16)
    with MemoryWatch() as watch:
        given = weights.counted("words", torch.bfloat16)
        came = fingerprint((name, one.detach().to(torch.bfloat16)) for name, one in given)
        found["sync"] = watch.peak
    with passes:
        before = passes.begin()
        sent = weights.checksum(torch.bfloat16, has_bits=True, given=given)
        found["proof"] = passes.peak - before
    found |= {"came": came, "sent": sent.fingerprint, "scores": sent.scores}
    with MemoryWatch() as watch:
        state = home.backend.state_dict(has_weights=False)
        found["state"] = watch.peak
    assert "model" not in state
    del state
    with MemoryWatch() as watch:
        home.save(Path(folder), None)
        found["save"] = watch.peak
    return found


def uses(ranks: Ranks) -> tuple[bool, bool]:
    """Whether a rank alone computes with a copy of its weights, which have the type already, of
    blocks and of the rest; it looks at the first block and at the last norm."""
    model = tiny_model().to(torch.bfloat16)
    tokens = TokenModel(model, ForwardOptions())
    spread(tokens.net, ranks.mesh("cpu"), compute=torch.bfloat16, is_freed=True)
    watched = [model.model.layers[0].input_layernorm, model.model.norm]
    held = [local_of(one.weight).data_ptr() for one in watched]
    used: list[int] = []
    for one in watched:
        one.register_forward_pre_hook(lambda module, _: used.append(module.weight.data_ptr()))
    tokens.net.inside(lambda: model(input_ids=torch.tensor([[1, 2, 3]])))
    return used[0] != held[0], used[1] != held[1]


def test_a_rank_alone_computes_with_a_copy_of_weights_that_are_spread(tmp_path: Path) -> None:
    assert on_ranks(1, uses, tmp_path) == [(True, True)]


@pytest.mark.slow
def test_weights_are_handed_on_and_saved_in_portions(tmp_path: Path) -> None:
    first, second = on_ranks(2, use, tmp_path, str(tmp_path / "actor"))

    for one in (first, second):
        assert one["all"] > 8 * one["bound"], "else it shows nothing"
        assert one["sync"] <= one["bound"] + BEHIND + COUNTING
        assert one["came"] == one["expected"]
        # The probe is scored in a pass: both ends, and a block while the next one comes.
        assert one["proof"] <= 3 * one["block"] + one["ends"]
    # Weights and running means are whole in the memory of the host, and there on rank 0 alone.
    assert second["state"] <= second["bound"] + BEHIND
    assert second["save"] <= second["bound"] + BEHIND + COUNTING
    assert first["state"] <= 2 * first["all"] + first["bound"] + BEHIND
    assert first["sent"] == first["expected"]
    assert first["scores"].tolist() == second["scores"].tolist()


@pytest.mark.parametrize(
    ("largest", "total", "ranks", "expected"),
    [
        (300.0, 500.0, 2, 500 + 250 + 300),  # all of it is less than a portion
        (64.0 * MIB, 640.0 * MIB, 8, (64 + 8 + 64) * MIB),
        (192.0 * MIB, 1000.0 * MIB, 4, (192 + 48 + 192) * MIB),  # larger than a portion
    ],
)
def test_what_gathering_needs_by_hand(
    largest: float, total: float, ranks: int, expected: float
) -> None:
    assert weight_buckets.gather_buffer_bytes(largest, total, "cpu", ranks) == expected


def parts_and_back(ranks: Ranks) -> list[tuple[Tensor, Tensor]]:
    """Tensors of odd shapes cut over ranks, and put together again."""
    from torch.distributed.tensor import Shard, distribute_tensor

    from coloop.workers.training.shards import gathered, part_of

    weight_buckets.CPU_BYTES = 200  # type: ignore[misc]
    mesh = ranks.mesh("cpu")
    shapes = [(7, 3), (1, 5), (16,), (3, 2, 2), (5,), (40, 2)]
    kinds = [torch.float32, torch.bfloat16, torch.float32, torch.float32, torch.bfloat16]
    given = [
        torch.arange(float(torch.Size(shape).numel())).view(shape).to(kind)
        for shape, kind in zip(shapes, [*kinds, torch.float32], strict=True)
    ]
    held = [distribute_tensor(torch.zeros_like(one), mesh, [Shard(0)]) for one in given]
    cut = [part_of(one, like) for one, like in zip(given, held, strict=True)]
    assert [one.to_local().shape for one in cut] == [one.to_local().shape for one in held]
    mixed = [*enumerate(cut), (99, 3), (100, torch.ones(2))]
    put = dict(gathered(mixed))
    assert list(put) == [number for number, _ in mixed]
    assert put[99] == 3
    return [(put[number], one) for number, one in enumerate(given)]


@pytest.mark.parametrize("size", [2, 3, 4])
def test_what_was_cut_over_ranks_is_put_together_bit_for_bit(size: int, tmp_path: Path) -> None:
    for pairs in on_ranks(size, parts_and_back, tmp_path):
        for ours, theirs in pairs:
            assert ours.dtype == theirs.dtype
            assert torch.equal(ours, theirs)


def test_a_model_that_waits_in_the_hosts_memory_computes_as_its_gpu_will() -> None:
    """Blocks and attention that are made for a CPU are not for weights that only begin there."""
    model = tiny_model()

    here, there = TokenModel(tiny_model()), TokenModel(model, device=torch.device("cuda"))

    assert here.lean_blocks
    assert not there.lean_blocks
    assert model.config._attn_implementation == "sdpa"


needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")


@pytest.mark.gpu
@needs_gpu
def test_on_a_gpu_weights_come_block_by_block_and_go_on_from_a_checkpoint(tmp_path: Path) -> None:
    """FSDP2 over NCCL on one rank: what is on the GPU at once when it begins, hands on and saves;
    an update after a resume equals one without."""
    sizes = {**SIZES, "hidden_size": 1024, "intermediate_size": 4096, "head_dim": 256}
    training = training_section(backend="fsdp2", lr=0.1)
    dtypes, load = trained_dtypes(training, ON_GPU), random_load("grpo", size=4)

    def build(seed: int) -> Trainer:
        model = tiny_model(seed=seed, **sizes)
        outline = LoadedModel(model=outline_of(model), tokenizer=character_tokenizer())
        backend = Fsdp2Backend(
            model, training, group="actor", dtypes=dtypes, device=torch.device("cuda")
        )
        weights = HeldWeights(name="actor", loaded=outline, dtypes=dtypes, backend=backend)
        update: Any = None
        return Trainer(weights=weights, backend=backend, update=update)

    def peak_of(work: Callable[[], Any]) -> int:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        work()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before

    found: list[Trainer] = []
    begun = peak_of(lambda: found.append(build(0)))
    (home,) = found
    every = [one.numel() * 4 for one in home.weights.loaded.model.parameters()]
    assert begun <= 1.5 * sum(every)
    home.backend.update([load], training, seed=0)
    bound = weight_buckets.gather_buffer_bytes(max(every), sum(every), "cuda", 1) + 64 * MIB

    def prove() -> None:
        given = home.weights.counted("words", torch.bfloat16)
        deque(given, maxlen=0)
        home.weights.checksum(torch.bfloat16, has_bits=True, given=given)

    assert peak_of(prove) <= bound
    assert peak_of(lambda: home.save(tmp_path / "actor", None)) <= bound
    resumed = build(9)
    resumed.load(tmp_path / "actor")
    for one in (home, resumed):
        one.backend.update([load], training, seed=1)
    for (_, ours), (_, theirs) in zip(home.weights.named(), resumed.weights.named(), strict=True):
        assert torch.equal(ours, theirs)
    leave()


def broken_save(ranks: Ranks, folder: str) -> dict[str, Tensor] | None:
    """The second rank is gone in the middle of the second save."""
    weight_buckets.CPU_BYTES = MIB  # type: ignore[misc]
    home = home_of(ranks)
    home.save(Path(folder), None)
    saved = {name: one.clone() for name, one in home.weights.named()}
    home.backend.update([random_load("grpo", size=4)], training_section(backend="fsdp2"), seed=1)
    if not ranks.is_first:
        next(home.backend.weights())
        leave()
        return None
    with pytest.raises(RuntimeError):
        home.save(Path(folder), None)
    return saved


@pytest.mark.slow
def test_a_save_that_a_rank_leaves_keeps_what_stood_there(tmp_path: Path) -> None:
    folder = tmp_path / "actor"

    saved, _ = on_ranks(2, broken_save, tmp_path, str(folder))

    found = load_weights(folder)
    assert [one.name for one in tmp_path.iterdir() if one.is_dir()] == ["actor"]
    assert all(torch.equal(found[name], weight) for name, weight in saved.items())
    state = torch.load(folder / "trainer.pt", weights_only=True)
    assert state["trainer"]["updates"] == 1
