"""The contract of every weight channel: what is pushed arrives, else it is told."""

import errno
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
import torch
from tests.engine.numerics import forward_terms, near, rounding
from torch import Tensor

from coloop.errors import StorageFull, WeightsNotUpdated
from coloop.models import LoadedModel, build_model, encode_prompt, fingerprint
from coloop.rollout import GenerationRequest, TorchEngine
from coloop.spec.model import ScratchModel
from coloop.sync import CHANNELS, FilesChannel, LocalChannel, WeightChannel
from coloop.sync.buckets import in_buckets
from coloop.sync.probe import score_source

Channel = Callable[[], WeightChannel]

LOGITS = 10.0
"""Greatest logit of the model."""


@pytest.fixture
def loaded() -> LoadedModel:
    section = ScratchModel(type="scratch", architecture="tiny-qwen3")
    return build_model(section, seed=0, root=Path())


@pytest.fixture
def engine(loaded: LoadedModel) -> TorchEngine:
    return TorchEngine(loaded.model, loaded.tokenizer)


@pytest.fixture(params=sorted(CHANNELS))
def channel(request: pytest.FixtureRequest) -> WeightChannel:
    return CHANNELS[request.param]()


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
    channel: WeightChannel, loaded: LoadedModel, engine: TorchEngine
) -> None:
    learn(loaded)

    proof = channel.push(loaded.model, engine, version=7)

    assert engine.version == proof.version == 7
    assert engine.fingerprint() == fingerprint(loaded.model.named_parameters())
    assert proof.fingerprint == engine.fingerprint()
    terms = forward_terms(loaded.model, 16)
    assert proof.difference < rounding(terms, scale=LOGITS)
    prompt = encode_prompt(loaded.tokenizer, "1+2=")
    asked = GenerationRequest(id="row", prompt_ids=prompt, seed=1, max_new_tokens=6)
    row = engine.generate([asked])[0]
    own = score_source(loaded.model, [prompt + row.token_ids])[0, len(prompt) :]
    assert row.version == 7
    assert row.log_probs == near(own.tolist(), terms=terms, scale=LOGITS)


def test_pushes_follow_one_another_and_tell_how_far_the_trainer_moved(
    channel: WeightChannel, loaded: LoadedModel, engine: TorchEngine
) -> None:
    first = channel.push(loaded.model, engine, version=1)
    learn(loaded)
    second = channel.push(loaded.model, engine, version=2)
    third = channel.push(loaded.model, engine, version=3)

    assert first.moved is None
    assert second.moved is not None
    assert second.moved > 1e-3
    assert third.moved == 0.0


def test_a_push_leaves_the_trainers_model_as_it_was(
    channel: WeightChannel, loaded: LoadedModel, engine: TorchEngine
) -> None:
    loaded.model.train()
    before = fingerprint(loaded.model.named_parameters())

    channel.push(loaded.model, engine, version=1)

    assert loaded.model.training
    assert fingerprint(loaded.model.named_parameters()) == before
    assert all(weight.requires_grad for weight in loaded.model.parameters())
    assert all(weight.grad is None for weight in loaded.model.parameters())


@pytest.mark.parametrize("kind", [Deaf, DeafAndBlind])
@pytest.mark.parametrize("rate", [1e-1, 1e-4])
def test_an_engine_that_the_weights_never_reach_is_found_at_the_next_push(
    kind: type[TorchEngine], rate: float, channel: WeightChannel, loaded: LoadedModel
) -> None:
    engine = kind(loaded.model, loaded.tokenizer)
    channel.push(loaded.model, engine, version=1)
    learn(loaded, rate)

    with pytest.raises(WeightsNotUpdated, match=r"moved by .* since version 1, .* by 0"):
        channel.push(loaded.model, engine, version=2)


def test_an_engine_that_was_deaf_from_the_start_is_found_by_the_difference(
    channel: WeightChannel, loaded: LoadedModel
) -> None:
    engine = DeafAndBlind(loaded.model, loaded.tokenizer)
    learn(loaded, 0.1)

    with pytest.raises(WeightsNotUpdated, match=r"differ from the trainer's by up to .* 0\.001"):
        channel.push(loaded.model, engine, version=1)


def test_distorted_weights_are_found_by_the_difference(
    channel: WeightChannel, loaded: LoadedModel
) -> None:
    with pytest.raises(WeightsNotUpdated, match="differ from the trainer's by up to"):
        channel.push(loaded.model, Distorting(loaded.model, loaded.tokenizer), version=1)


def test_the_smallest_distortion_is_found_by_the_fingerprint(
    channel: WeightChannel, loaded: LoadedModel
) -> None:
    engine = BarelyDistorting(loaded.model, loaded.tokenizer)

    with pytest.raises(WeightsNotUpdated, match=r"fingerprint [0-9a-f]{16}, [0-9a-f]{16} is"):
        channel.push(loaded.model, engine, version=1)


def test_another_version_than_pushed_is_told(channel: WeightChannel, loaded: LoadedModel) -> None:
    engine = Forgetful(loaded.model, loaded.tokenizer)

    with pytest.raises(WeightsNotUpdated, match=r"version 5 was pushed, .* says 0"):
        channel.push(loaded.model, engine, version=5)


def test_weights_that_are_not_finite_are_told(
    channel: WeightChannel, loaded: LoadedModel, engine: TorchEngine
) -> None:
    with torch.no_grad():
        loaded.model.model.norm.weight[0] = torch.nan

    with pytest.raises(WeightsNotUpdated, match="by up to nan"):
        channel.push(loaded.model, engine, version=1)


def test_an_engine_in_half_precision_is_compared_in_its_own_type(
    channel: WeightChannel, loaded: LoadedModel
) -> None:
    engine = TorchEngine(loaded.model, loaded.tokenizer, dtype=torch.bfloat16)
    learn(loaded)

    proof = channel.push(loaded.model, engine, version=1)

    assert 1e-5 < proof.difference < proof.tolerance == 0.25


# Portions


@pytest.mark.parametrize("kind", [LocalChannel, FilesChannel])
def test_any_size_of_the_portions_brings_the_same_weights(
    kind: type[LocalChannel] | type[FilesChannel], loaded: LoadedModel, engine: TorchEngine
) -> None:
    for version, size in enumerate((1, 20_000, 10**9), start=1):
        learn(loaded)
        kind(bucket_bytes=size).push(loaded.model, engine, version=version)

        assert engine.fingerprint() == fingerprint(loaded.model.named_parameters())


def test_portions_keep_order_and_size() -> None:
    weights = [
        (name, torch.zeros(size)) for name, size in zip("abcde", (2, 2, 9, 1, 1), strict=True)
    ]

    names = [[name for name, _ in bucket] for bucket in in_buckets(weights, 16)]

    assert names == [["a", "b"], ["c"], ["d", "e"]]
    assert list(in_buckets([], 16)) == []


# Files


def test_two_processes_share_weights_through_a_folder(
    tmp_path: Path, loaded: LoadedModel, engine: TorchEngine
) -> None:
    trainer, reader = FilesChannel(tmp_path), FilesChannel(tmp_path)
    learn(loaded)

    trainer.publish(loaded.model, 3)

    assert reader.receive(engine) == 3
    assert engine.version == 3
    assert engine.fingerprint() == fingerprint(loaded.model.named_parameters())


def test_the_last_two_versions_are_kept(tmp_path: Path, loaded: LoadedModel) -> None:
    channel = FilesChannel(tmp_path)
    for version in (1, 2, 3, 10):
        channel.publish(loaded.model, version)

    assert channel.versions() == [3, 10]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["version-10", "version-3"]


def test_a_version_that_is_half_written_is_not_there(
    tmp_path: Path, loaded: LoadedModel, engine: TorchEngine
) -> None:
    channel = FilesChannel(tmp_path)
    (tmp_path / "version-4").mkdir()

    with pytest.raises(WeightsNotUpdated, match="there are \\[\\]"):
        channel.receive(engine)


def test_a_damaged_file_is_told_and_the_engine_takes_the_next_version(
    tmp_path: Path, loaded: LoadedModel, engine: TorchEngine
) -> None:
    channel = FilesChannel(tmp_path)
    file = next(channel.publish(loaded.model, 1).glob("*.safetensors"))
    file.write_bytes(file.read_bytes()[:500])

    with pytest.raises(WeightsNotUpdated, match="version 1 cannot be read"):
        channel.receive(engine, 1)

    channel.push(loaded.model, engine, version=2)
    assert engine.version == 2


def test_a_full_disk_leaves_the_versions_that_were_there(
    tmp_path: Path, loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = FilesChannel(tmp_path)
    channel.publish(loaded.model, 1)

    def no_room(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("coloop.sync.files.save_file", no_room)

    with pytest.raises(StorageFull, match="no room for version 2"):
        channel.publish(loaded.model, 2)
    assert [path.name for path in tmp_path.iterdir()] == ["version-1"]
