"""Model folders: whole or not at all, and loadable by everybody."""

import errno
import shutil
from pathlib import Path

import pytest
import torch
from tests.engine.numerics import assert_near, forward_terms
from transformers import AutoModelForCausalLM, AutoTokenizer

from coloop.errors import CheckpointError, StorageFull
from coloop.models import LoadedModel, build_model, load_weights, save_hf
from coloop.models.folder import link_tree, read_weights, written_aside
from coloop.models.tokenizer import encode_prompt
from coloop.spec.model import ScratchModel
from coloop.workers.fingerprint import fingerprint


@pytest.fixture
def loaded() -> LoadedModel:
    section = ScratchModel(type="scratch", architecture="tiny-qwen3")
    return build_model(section, seed=0, root=Path())


def test_a_saved_folder_is_loaded_by_the_auto_classes_with_the_same_logits(
    tmp_path: Path, loaded: LoadedModel
) -> None:
    save_hf(tmp_path / "model", loaded.model, loaded.tokenizer)

    model = AutoModelForCausalLM.from_pretrained(tmp_path / "model")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "model")

    ids = torch.tensor([encode_prompt(tokenizer, "12+34=")])
    with torch.inference_mode():
        found, expected = model(ids).logits, loaded.model.eval()(ids).logits
    assert all(map(torch.equal, model.parameters(), loaded.model.parameters()))
    # Equal weights at other places in memory may be multiplied in another order.
    assert_near(found, expected, terms=forward_terms(model, ids.numel()))


def test_saving_again_replaces_the_folder_and_leaves_nothing_beside_it(
    tmp_path: Path, loaded: LoadedModel
) -> None:
    save_hf(tmp_path / "model", loaded.model, loaded.tokenizer)
    (tmp_path / "model" / "left-over").write_text("", encoding="utf-8")
    with torch.no_grad():
        loaded.model.model.norm.weight.add_(1.0)

    save_hf(tmp_path / "model", loaded.model, loaded.tokenizer)

    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert not (tmp_path / "model" / "left-over").exists()
    assert fingerprint(read_weights(tmp_path / "model")) == fingerprint(
        loaded.model.named_parameters()
    )


def test_a_full_disk_leaves_the_old_folder_as_it_was(
    tmp_path: Path, loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_hf(tmp_path / "model", loaded.model, loaded.tokenizer)
    before = fingerprint(read_weights(tmp_path / "model"))

    def no_room(folder: Path) -> None:
        (Path(folder) / "half.safetensors").write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(loaded.model, "save_pretrained", no_room)
    with torch.no_grad():
        loaded.model.model.norm.weight.add_(1.0)

    with pytest.raises(StorageFull, match="no room"):
        save_hf(tmp_path / "model", loaded.model, loaded.tokenizer)

    assert fingerprint(read_weights(tmp_path / "model")) == before
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_folder_that_does_not_read_back_is_never_put_in_place(
    tmp_path: Path, loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_as_it_is = loaded.model.save_pretrained

    def save_then_change(folder: Path) -> None:
        save_as_it_is(folder)
        with torch.no_grad():
            loaded.model.model.norm.weight.add_(1.0)

    monkeypatch.setattr(loaded.model, "save_pretrained", save_then_change)

    with pytest.raises(
        CheckpointError, match=r"model\.norm\.weight differs from the one in memory"
    ):
        save_hf(tmp_path / "model", loaded.model, loaded.tokenizer)

    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("can_link", [True, False])
def test_a_linked_folder_outlives_the_one_that_it_was_made_from(
    can_link: bool, tmp_path: Path, loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first" / "model", tmp_path / "second" / "model"
    save_hf(first, loaded.model, loaded.tokenizer)
    written = (first / "model.safetensors").stat().st_ino
    if not can_link:
        monkeypatch.setattr("os.link", lambda *_: (_ for _ in ()).throw(OSError(errno.EXDEV, "x")))

    with written_aside(second) as aside:
        link_tree(first, aside)

    assert ((second / "model.safetensors").stat().st_ino == written) is can_link
    shutil.rmtree(first)
    assert fingerprint(read_weights(second)) == fingerprint(loaded.model.named_parameters())


def test_sharded_folders_are_read_whole(tmp_path: Path, loaded: LoadedModel) -> None:
    loaded.model.save_pretrained(tmp_path, max_shard_size="100KB")

    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    weights = load_weights(tmp_path)
    assert fingerprint(weights.items()) == fingerprint(loaded.model.named_parameters())


def test_a_folder_without_weights_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="contains no weights"):
        load_weights(tmp_path)


def test_fingerprints_tell_every_change_and_no_order() -> None:
    first, second = torch.randn(4, 5), torch.randn(3)
    whole = fingerprint([("a", first), ("b", second)])

    assert fingerprint([("b", second), ("a", first)]) == whole
    assert fingerprint([("a", second), ("b", first)]) != whole
    assert fingerprint([("a", first.flip(0)), ("b", second)]) != whole
    assert fingerprint([("a", first), ("b", second * (1 + 1e-6))]) != whole
    assert fingerprint([("a", first.t().contiguous().t()), ("b", second)]) == whole


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_a_fingerprint_is_of_the_bits_wherever_they_lie(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    long = torch.randn(2**17 + 3, generator=generator).to(dtype)
    odd = torch.cat([long[:1], long])[1:]  # not where a word begins
    signs = long.clone()
    signs[[1, 5]] *= -1  # the upper bits of two words
    swapped = long.clone()
    swapped[[3, -3]] = swapped[[-3, 3]]
    last = long.clone()
    last[-1] += 1

    found = [fingerprint([("a", one)]) for one in (long, odd, signs, swapped, last, -long)]

    assert found[0] == found[1]
    assert len(set(found[1:])) == 5


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_a_fingerprint_in_another_type_is_that_of_the_cast_weights(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    weights = [("a", torch.randn(2**18 + 5, generator=generator)), ("b", torch.zeros(0))]

    cast = fingerprint([(name, weight.to(dtype)) for name, weight in weights])

    assert fingerprint(weights, dtype) == cast


@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
def test_small_weights_that_are_read_together_count_like_each_alone(
    dtype: torch.dtype | None,
) -> None:
    generator = torch.Generator().manual_seed(0)
    shapes = [(4, 6), (3,), (8,), (300, 256), (400, 512), (0,), (16, 4), (2**17,), (5, 8)]
    weights = [
        (str(at), torch.randn(shape, generator=generator)) for at, shape in enumerate(shapes)
    ]
    weights += [
        ("turned", torch.randn(8, 12, generator=generator).t()),
        ("half", weights[3][1].half()),
    ]
    alone = sum(fingerprint([one], dtype) for one in weights) % 2**64

    assert fingerprint(weights, dtype) == alone
    assert fingerprint(reversed(weights), dtype) == alone


def test_a_fingerprint_tells_every_bit_of_small_weights() -> None:
    generator = torch.Generator().manual_seed(0)
    held = {str(at): torch.randn(4, 8, generator=generator).bfloat16() for at in range(3)}
    found = {fingerprint(held.items())}
    for weight in held.values():
        bits = weight.view(torch.int16).view(-1)
        for place in range(len(bits)):
            for bit in range(16):
                bits[place] ^= -(2**15) if bit == 15 else 2**bit
                found.add(fingerprint(held.items()))
                bits[place] ^= -(2**15) if bit == 15 else 2**bit
    exchanged = {"0": held["1"], "1": held["0"], "2": held["2"]}
    found.add(fingerprint(exchanged.items()))

    assert len(found) == 1 + 3 * 32 * 16 + 1


@pytest.mark.attack
@pytest.mark.parametrize("place", ["templates", "below/templates"])
def test_a_link_to_a_folder_is_not_followed(tmp_path: Path, place: str) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "diary").write_text("nobody else may read this", encoding="utf-8")
    link = tmp_path / "model" / place
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / "private")

    expected = pytest.raises(CheckpointError, match="templates is a link to a folder")
    with expected, written_aside(tmp_path / "linked") as aside:
        link_tree(tmp_path / "model", aside)

    assert not (tmp_path / "linked").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "private"]
    assert (tmp_path / "private" / "diary").exists()
