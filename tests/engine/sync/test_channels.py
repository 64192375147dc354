"""The contract of every weight channel: what is pushed arrives, else it is told."""

import errno
import json
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.engine.generating import generate
from tests.engine.numerics import forward_terms, near, rounding
from torch import Tensor

from coloop.errors import StorageFull, WeightsNotUpdated
from coloop.models import LoadedModel, build_model
from coloop.models.tokenizer import encode_prompt
from coloop.spec.model import ScratchModel
from coloop.workers.fingerprint import fingerprint
from coloop.workers.rollout import Generation, RolloutEngine, TorchEngine
from coloop.workers.sync import (
    CHANNELS,
    MEETINGS,
    ChecksumVerifier,
    FilesChannel,
    GroupChannel,
    WeightTransfer,
    checksum_of_engine,
    checksum_of_model,
)
from coloop.workers.sync import folders as folders_module
from coloop.workers.sync import group as group_module
from coloop.workers.sync.checksums import Counted, score_source
from coloop.workers.sync.folders import PREFIX, TransferFolders, can_use
from coloop.workers.sync.protocol import Proof, in_buckets

LOGITS = 10.0
"""Greatest logit of the model."""


@pytest.fixture
def loaded() -> LoadedModel:
    section = ScratchModel(type="scratch", architecture="tiny-qwen3")
    return build_model(section, seed=0, root=Path())


@pytest.fixture
def engine(loaded: LoadedModel) -> TorchEngine:
    return TorchEngine(loaded.model, loaded.tokenizer)


class Line:
    """A channel from a model to an engine, each end with an object of its own, and who compares."""

    def __init__(self, kind: str, folder: Path, **options: int) -> None:
        given: dict[str, Any] = {"files": {"places": [folder]}}
        self.kind = kind
        self.sender: Any = CHANNELS[kind](**given.get(kind, {}), **options)
        self.receiver: Any = CHANNELS[kind](**given.get(kind, {}))
        self.verifier = ChecksumVerifier()

    def push(self, loaded: LoadedModel, engine: RolloutEngine, *, version: int) -> Proof:
        """As a sync brings weights to an engine."""
        if self.kind in MEETINGS:
            self.sender.invite("all", 0, 1)
        transfer = self.sender.send(
            loaded.model.named_parameters(), version=version, dtype=engine.dtype
        )
        sent = checksum_of_model(loaded.model, version, dtype=engine.dtype)
        with ThreadPoolExecutor(1) as lane, closing(self.receiver.receive(transfer)) as weights:
            giving = lane.submit(self.sender.deliver, transfer) if self.kind in MEETINGS else None
            engine.load_weights(weights, transfer.version)
            if giving is not None:
                giving.result()
        proof = self.verifier.check(sent, checksum_of_engine(engine, sent.probe))
        self.sender.forget(transfer)
        return proof


HERE = sorted(set(CHANNELS) - {"nccl"})
"""Those that need no GPU."""


@pytest.fixture(autouse=True)
def shared_by_name() -> Iterator[None]:
    """On a CPU memory is mapped by the name of a file, which any process of the machine can
    open."""
    before = torch.multiprocessing.get_sharing_strategy()
    torch.multiprocessing.set_sharing_strategy("file_system")
    yield
    torch.multiprocessing.set_sharing_strategy(before)


@pytest.fixture(params=HERE)
def channel(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Line]:
    line = Line(request.param, tmp_path)
    yield line
    if line.kind in MEETINGS:
        line.sender.close()
        line.receiver.close()


def learn(loaded: LoadedModel, rate: float = 1e-2) -> None:
    """One step of a trainer: every weight moves a little."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for weight in loaded.model.parameters():
            weight.add_(rate * torch.randn(weight.shape, generator=generator))


class Deaf(TorchEngine):
    """Says that it took the weights, and did not: what a broken name mapping looks like."""

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], version: int) -> None:
        list(weights)
        self._version = version


class DeafAndBlind(Deaf):
    """And cannot tell its own weights, as an engine of another process might not."""

    def fingerprint(self) -> None:  # type: ignore[override]
        return None


class Distorting(TorchEngine):
    """Takes the weights, and changes one of them."""

    factor = 1.5

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], version: int) -> None:
        def distorted() -> Iterator[tuple[str, Tensor]]:
            for name, weight in weights:
                is_down = name.endswith("layers.0.mlp.down_proj.weight")
                yield name, weight * self.factor if is_down else weight

        super().load_weights(distorted(), version)


class BarelyDistorting(Distorting):
    factor = 1 + 1e-6


class Forgetful(TorchEngine):
    """Takes the weights under the version it had."""

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], version: int) -> None:
        super().load_weights(weights, self.version)


# The contract


def test_after_a_push_the_engine_holds_and_samples_the_new_weights(
    channel: Line, loaded: LoadedModel, engine: TorchEngine
) -> None:
    learn(loaded)

    proof = channel.push(loaded, engine, version=7)

    assert engine.version == proof.version == 7
    assert engine.fingerprint() == fingerprint(loaded.model.named_parameters())
    assert proof.fingerprint == engine.fingerprint()
    terms = forward_terms(loaded.model, 16)
    assert proof.difference < rounding(terms, scale=LOGITS)
    prompt = encode_prompt(loaded.tokenizer, "1+2=")
    asked = Generation(id="row", prompt_ids=prompt, seed=1, max_new_tokens=6)
    row = generate(engine, [asked])[0]
    own = score_source(loaded.model, [prompt + row.token_ids])[0, len(prompt) :]
    assert row.versions == ((0, 7),)
    assert row.log_probs == near(own.tolist(), terms=terms, scale=LOGITS)


def test_pushes_follow_one_another_and_tell_how_far_the_trainer_moved(
    channel: Line, loaded: LoadedModel, engine: TorchEngine
) -> None:
    first = channel.push(loaded, engine, version=1)
    learn(loaded)
    second = channel.push(loaded, engine, version=2)
    third = channel.push(loaded, engine, version=3)

    assert first.moved is None
    assert second.moved is not None
    assert second.moved > 1e-3
    assert third.moved == 0.0


def test_a_push_leaves_the_trainers_model_as_it_was(
    channel: Line, loaded: LoadedModel, engine: TorchEngine
) -> None:
    loaded.model.train()
    before = fingerprint(loaded.model.named_parameters())

    channel.push(loaded, engine, version=1)

    assert loaded.model.training
    assert fingerprint(loaded.model.named_parameters()) == before
    assert all(weight.requires_grad for weight in loaded.model.parameters())
    assert all(weight.grad is None for weight in loaded.model.parameters())


@pytest.mark.sample(4)
@pytest.mark.parametrize("kind", [Deaf, DeafAndBlind])
@pytest.mark.parametrize("rate", [1e-1, 1e-4])
def test_an_engine_that_the_weights_never_reach_is_found_at_the_next_push(
    kind: type[TorchEngine], rate: float, channel: Line, loaded: LoadedModel
) -> None:
    engine = kind(loaded.model, loaded.tokenizer)
    channel.push(loaded, engine, version=1)
    learn(loaded, rate)

    with pytest.raises(WeightsNotUpdated, match=r"moved by .* since version 1, .* by 0"):
        channel.push(loaded, engine, version=2)


def test_an_engine_that_was_deaf_from_the_start_is_found_by_the_difference(
    channel: Line, loaded: LoadedModel
) -> None:
    engine = DeafAndBlind(loaded.model, loaded.tokenizer)
    learn(loaded, 0.1)

    with pytest.raises(WeightsNotUpdated, match=r"differ from the trainer's by up to .* 0\.001"):
        channel.push(loaded, engine, version=1)


def test_distorted_weights_are_found_by_the_difference(channel: Line, loaded: LoadedModel) -> None:
    with pytest.raises(WeightsNotUpdated, match="differ from the trainer's by up to"):
        channel.push(loaded, Distorting(loaded.model, loaded.tokenizer), version=1)


def test_the_smallest_distortion_is_found_by_the_fingerprint(
    channel: Line, loaded: LoadedModel
) -> None:
    engine = BarelyDistorting(loaded.model, loaded.tokenizer)

    with pytest.raises(WeightsNotUpdated, match=r"fingerprint [0-9a-f]{16}, expected [0-9a-f]{16}"):
        channel.push(loaded, engine, version=1)


def test_another_version_than_pushed_is_told(channel: Line, loaded: LoadedModel) -> None:
    engine = Forgetful(loaded.model, loaded.tokenizer)

    with pytest.raises(WeightsNotUpdated, match=r"version 5 was sent, but .* reports 0"):
        channel.push(loaded, engine, version=5)


def test_weights_that_are_not_finite_are_told(
    channel: Line, loaded: LoadedModel, engine: TorchEngine
) -> None:
    with torch.no_grad():
        loaded.model.model.norm.weight[0] = torch.nan

    with pytest.raises(WeightsNotUpdated, match="by up to nan"):
        channel.push(loaded, engine, version=1)


def test_an_engine_in_half_precision_is_compared_in_its_own_type(
    channel: Line, loaded: LoadedModel
) -> None:
    engine = TorchEngine(loaded.model, loaded.tokenizer, dtype=torch.bfloat16)
    learn(loaded)

    proof = channel.push(loaded, engine, version=1)

    assert 1e-5 < proof.difference < proof.tolerance == 0.25


def test_half_precision_of_a_model_that_is_sure_counts_by_the_size_of_its_log_probs(
    channel: Line, loaded: LoadedModel
) -> None:
    with torch.no_grad():
        loaded.model.model.norm.weight.mul_(100)
    engine = TorchEngine(loaded.model, loaded.tokenizer, dtype=torch.bfloat16)
    learn(loaded)

    proof = channel.push(loaded, engine, version=1)

    assert 0.25 < proof.difference < proof.tolerance


# Portions


@pytest.mark.parametrize("kind", ["files", "gloo"])
@pytest.mark.parametrize("size", [1, 20_000, 10**9])
def test_any_size_of_the_portions_brings_the_same_weights(
    size: int, kind: str, tmp_path: Path, loaded: LoadedModel, engine: TorchEngine
) -> None:
    learn(loaded)

    Line(kind, tmp_path, bucket_bytes=size).push(loaded, engine, version=1)

    assert engine.fingerprint() == fingerprint(loaded.model.named_parameters())


def test_portions_keep_order_and_size() -> None:
    weights = [
        (name, torch.zeros(size)) for name, size in zip("abcde", (2, 2, 9, 1, 1), strict=True)
    ]

    names = [[name for name, _ in bucket] for bucket in in_buckets(weights, 16)]

    assert names == [["a", "b"], ["c"], ["d", "e"]]
    assert list(in_buckets([], 16)) == []


# What travels


def test_weights_travel_in_the_type_that_is_wanted(tmp_path: Path, loaded: LoadedModel) -> None:
    held = dict(loaded.model.named_parameters())
    channel = FilesChannel([tmp_path])
    transfer = channel.send(held.items(), version=1, dtype=torch.bfloat16)

    came = dict(channel.receive(transfer))

    assert transfer.size_bytes == sum(2 * weight.numel() for weight in held.values())
    assert came.keys() == held.keys()
    for name, weight in came.items():
        assert torch.equal(weight, held[name].to(torch.bfloat16))


def test_what_is_counted_as_it_passes_has_the_fingerprint_of_the_whole(
    loaded: LoadedModel,
) -> None:
    counted = Counted(loaded.model.named_parameters())

    assert [name for name, _ in counted] == [name for name, _ in loaded.model.named_parameters()]
    assert counted.fingerprint == fingerprint(loaded.model.named_parameters())


# Files


def test_a_source_learns_on_while_its_parcel_is_on_the_way(
    tmp_path: Path, loaded: LoadedModel, engine: TorchEngine
) -> None:
    sent = fingerprint(loaded.model.named_parameters())
    transfer = FilesChannel([tmp_path]).send(loaded.model.named_parameters(), version=3)
    learn(loaded)

    engine.load_weights(FilesChannel().receive(transfer), transfer.version)

    assert engine.version == 3
    assert engine.fingerprint() == sent


def test_a_parcel_is_opened_by_several_and_gone_when_it_is_forgotten(
    tmp_path: Path, loaded: LoadedModel
) -> None:
    channel = FilesChannel([tmp_path])
    transfer = channel.send(loaded.model.named_parameters(), version=3)
    once, twice = (fingerprint(FilesChannel().receive(transfer)) for _ in range(2))

    channel.forget(transfer)

    assert once == twice == fingerprint(loaded.model.named_parameters())
    assert list(tmp_path.iterdir()) == []


def files_of(transfer: WeightTransfer) -> list[Path]:
    """The buckets of a transfer on the disk."""
    return sorted(Path(transfer.place[0]).iterdir())


def flip(path: Path) -> None:
    """Another bit in the last number of a bucket."""
    whole = bytearray(path.read_bytes())
    whole[-2] ^= 1
    path.write_bytes(whole)


def test_flipped_bytes_are_found_by_the_fingerprint(
    tmp_path: Path, loaded: LoadedModel, engine: TorchEngine
) -> None:
    transfer = FilesChannel([tmp_path], 20_000).send(loaded.model.named_parameters(), version=1)
    sent = checksum_of_model(loaded.model, 1, dtype=torch.float32)
    flip(files_of(transfer)[3])

    engine.load_weights(FilesChannel().receive(transfer), 1)

    with pytest.raises(
        WeightsNotUpdated, match=r"fingerprint [0-9a-f]{16}, expected [0-9a-f]{16}|by up"
    ):
        ChecksumVerifier().check(sent, checksum_of_engine(engine, sent.probe))


@pytest.mark.parametrize("what", ["gone", "short"])
def test_a_bucket_that_is_not_whole_is_told_and_the_engine_takes_the_next_version(
    what: str, tmp_path: Path, loaded: LoadedModel, engine: TorchEngine
) -> None:
    line = Line("files", tmp_path, bucket_bytes=20_000)
    transfer = line.sender.send(loaded.model.named_parameters(), version=1)
    broken = files_of(transfer)[2]
    if what == "gone":
        broken.unlink()
    else:
        broken.write_bytes(broken.read_bytes()[:500])

    with pytest.raises(WeightsNotUpdated, match=r"version 1 .*/weights-00002\.safetensors: "):
        engine.load_weights(FilesChannel().receive(transfer), 1)

    with pytest.raises(WeightsNotUpdated, match="failed midway"):
        engine.score([[5, 6]])
    line.push(loaded, engine, version=2)
    assert engine.version == 2


def test_a_full_disk_leaves_nothing_behind(
    tmp_path: Path, loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []

    def no_room(tensors: object, path: Path) -> None:
        if written:
            raise OSError(errno.ENOSPC, "No space left on device")
        path.write_bytes(b"half")
        written.append(path)

    monkeypatch.setattr("coloop.workers.sync.files.save_file", no_room)

    with pytest.raises(StorageFull, match="no space for version 2"):
        FilesChannel([tmp_path], 20_000).send(loaded.model.named_parameters(), version=2)
    assert written
    assert list(tmp_path.iterdir()) == []


def test_the_first_place_with_room_is_taken(
    tmp_path: Path, loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    large.mkdir()
    rooms = {small: 1000, large: 10**12}
    monkeypatch.setattr("coloop.workers.sync.files._free_bytes_of", rooms.__getitem__)

    transfer = FilesChannel([small, large]).send(loaded.model.named_parameters(), version=1)

    assert Path(transfer.place[0]).parent == large
    with pytest.raises(StorageFull, match=r"\d+ bytes\): .*small has 1000 bytes free"):
        FilesChannel([small]).send(loaded.model.named_parameters(), version=1)


# Folders of a run


def test_folders_of_a_run_are_gone_with_it(tmp_path: Path) -> None:
    with closing(TransferFolders([tmp_path, tmp_path / "nowhere"])) as folders:
        [path] = folders.paths
        (path / "parcel-1").mkdir()
        assert folders.paths == [path]
        assert can_use(path)

    assert list(tmp_path.iterdir()) == []
    assert not can_use(path)


def test_what_a_killed_run_left_is_cleared_away_and_what_a_living_one_has_stays(
    tmp_path: Path,
) -> None:
    code = (  # the module alone: its package brings torch
        "import os, pathlib, runpy, sys; module = runpy.run_path(sys.argv[1]);"
        "folders = module['TransferFolders']([pathlib.Path(sys.argv[2])]);"
        "print(folders.paths[0], flush=True); os.kill(os.getpid(), 9)"
    )
    command = [sys.executable, "-c", code, folders_module.__file__, str(tmp_path)]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    left = Path(told.stdout.strip())
    with closing(TransferFolders([tmp_path])) as living:
        [path] = living.paths
        assert left.name.startswith(PREFIX)
        assert not left.exists()

        with closing(TransferFolders([tmp_path])) as other:
            assert len(other.paths) == 1
            assert path.exists()


# Ends that are at work at once


@pytest.mark.gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two NVIDIA GPUs")
def test_from_gpu_to_gpu(tmp_path: Path, loaded: LoadedModel) -> None:
    loaded.model.to("cuda:0")
    engine = TorchEngine(loaded.model, loaded.tokenizer, device="cuda:1")
    learn(loaded)
    line = Line("nccl", tmp_path)
    line.receiver = GroupChannel("nccl", device="cuda:1")

    proof = line.push(loaded, engine, version=1)

    assert proof.fingerprint == fingerprint(loaded.model.named_parameters())


class HangingWork:
    """A broadcast between GPUs of which one is gone: it never ends, and says nothing."""

    def is_completed(self) -> bool:
        return False

    def wait(self) -> None:
        raise AssertionError("it would wait for ever")


class HangingGroup:
    def __init__(self) -> None:
        self.is_aborted = False

    def broadcast(self, tensors: Any, options: Any) -> HangingWork:
        return HangingWork()

    def abort(self) -> None:
        self.is_aborted = True


@pytest.mark.parametrize("how", ["told", "too long"])
def test_a_broadcast_that_hangs_is_aborted_and_the_sender_goes_on(
    how: str, loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    hanging, weights = HangingGroup(), list(loaded.model.named_parameters())
    real: list[Any] = []
    sender, receiver = GroupChannel("gloo"), GroupChannel("gloo")
    sender.invite("both", 0, 1)
    transfer = sender.send(weights, version=1)
    with ThreadPoolExecutor(1) as lane:
        taking = lane.submit(list, receiver.receive(transfer))
        sender.deliver(transfer)
        taking.result()
    transfer = sender.send(weights, version=2)
    if how == "too long":
        monkeypatch.setattr(group_module, "WAIT_SECONDS", 0.5)

    def break_in(key: str) -> None:
        """The receiver has come for the first bucket, and dies in it."""
        transport = sender._ends["both"].transport("gloo", "cpu")
        real.append(transport._group)  # the receiver waits in it
        transport._group = hanging
        if how == "told":
            GroupChannel.give_up(transfer, "pool write has died")

    with ThreadPoolExecutor(1) as lane:
        taking = lane.submit(list, receiver.receive(transfer))
        monkeypatch.setattr(sender._ends["both"].meeting, "wait_for_all", break_in)
        reason = "pool write has died" if how == "told" else "did not reach all within 0.5 s"
        with pytest.raises(WeightsNotUpdated, match=reason):
            sender.deliver(transfer)
        real.clear()
        with pytest.raises(WeightsNotUpdated):
            taking.result()

    assert hanging.is_aborted
    monkeypatch.undo()
    sender.invite("both", 1, 1)  # they meet anew
    transfer = sender.send(weights, version=3)
    with ThreadPoolExecutor(1) as lane:
        taking = lane.submit(list, receiver.receive(transfer))
        sender.deliver(transfer)
        assert fingerprint(taking.result()) == fingerprint(weights)
    sender.close()
    receiver.close()


def test_one_that_dies_before_all_are_joined_is_not_waited_for(loaded: LoadedModel) -> None:
    """The sender has told of a bucket, and is gone before bytes can flow."""
    sender, receiver = GroupChannel("gloo"), GroupChannel("gloo")
    sender.invite("both", 0, 1)
    transfer = sender.send([("a", torch.zeros(4))], version=1)
    row = ["a", "float32", [4], 0]
    sender._ends["both"].meeting.tell("1/1", json.dumps({"size": 16, "weights": [row]}))
    with ThreadPoolExecutor(1) as lane:
        taking = lane.submit(list, receiver.receive(transfer))
        while not sender._ends["both"].meeting.store.check(["group/0/1"]):
            time.sleep(0.001)
        GroupChannel.give_up(transfer, "pool train has died")
        with pytest.raises(WeightsNotUpdated, match="pool train has died"):
            taking.result()


def test_who_stops_reading_is_told_to_all_at_once(loaded: LoadedModel) -> None:
    sender, first, second = (GroupChannel("gloo", bucket_bytes=1000) for _ in range(3))
    weights = list(loaded.model.named_parameters())

    def read(channel: GroupChannel, transfer: WeightTransfer, count: int) -> int:
        with closing(channel.receive(transfer)) as came:
            return sum(1 for _, _ in zip(came, range(count), strict=False))

    for turn, counts in enumerate([(2, 10**6), (10**6, 10**6)]):
        sender.invite("three", 0, 2)
        transfer = sender.send(weights, version=turn)
        with ThreadPoolExecutor(2) as lanes:
            ends = zip((first, second), counts, strict=True)
            readers = [lanes.submit(read, channel, transfer, count) for channel, count in ends]
            if turn == 0:
                with pytest.raises(WeightsNotUpdated, match="it was cancelled"):
                    sender.deliver(transfer)
                # The sender, who leaves as well, may be gone before this end can ask it why.
                with pytest.raises(WeightsNotUpdated, match="broke off"):
                    readers[1].result()
            else:  # they meet anew
                sender.deliver(transfer)
                assert [one.result() for one in readers] == [len(weights)] * 2
    for channel in (sender, first, second):
        channel.close()
