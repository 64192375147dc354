"""Models from scratch and from folders."""

import hashlib
import json
from pathlib import Path

import pytest
import torch

from coloop.errors import CheckpointError, ModelUnavailable
from coloop.hub.about import describe_model
from coloop.hub.download import download
from coloop.models import LoadedModel, build_model, save_hf
from coloop.models.build import copy_model
from coloop.models.folder import load_weights
from coloop.models.on_disk import damage_of_weights
from coloop.models.pretrained import find_source
from coloop.spec import presets
from coloop.spec.model import PretrainedModel, ScratchModel, SnapshotModel
from coloop.workers.fingerprint import fingerprint

HERE = Path()


def scratch(seed: int = 0, architecture: str = "tiny-qwen3", **options: object) -> LoadedModel:
    section = ScratchModel.model_validate(
        {"type": "scratch", "architecture": architecture, **options}
    )
    return build_model(section, seed=seed, root=HERE)


def marks(loaded: LoadedModel) -> int:
    return fingerprint(loaded.model.named_parameters())


@pytest.mark.parametrize(
    "name", [name for name in presets.list_models() if name.startswith("tiny-")]
)
def test_a_tiny_architecture_is_built_as_its_facts_say(name: str) -> None:
    facts = presets.architecture(name)

    model = scratch(architecture=name).model

    assert model.config.model_type == facts["model_type"]
    assert model.config.hidden_size == facts["hidden_size"]
    assert model.get_input_embeddings().weight.shape == (facts["vocab_size"], facts["hidden_size"])


def test_the_seed_decides_the_weights_and_nothing_else_does() -> None:
    torch.manual_seed(1)
    first = marks(scratch(seed=7))
    torch.manual_seed(2)
    torch.rand(5)

    assert marks(scratch(seed=7)) == first
    assert marks(scratch(seed=8)) != first


def test_building_leaves_the_random_state_of_the_process_alone() -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()

    scratch()

    assert torch.equal(torch.get_rng_state(), before)


def test_the_initial_range_is_that_of_the_facts_or_of_the_spec() -> None:
    own = float(scratch().model.get_input_embeddings().weight.detach().std())
    asked = float(scratch(initial_range=0.5).model.lm_head.weight.detach().std())

    assert own == pytest.approx(presets.architecture("tiny-qwen3")["initializer_range"], rel=0.05)
    assert asked == pytest.approx(0.5, rel=0.05)


def test_a_dtype_is_kept_and_starts_from_the_same_draws() -> None:
    half = scratch(seed=1, dtype="bfloat16").model
    full = scratch(seed=1).model

    assert half.dtype == torch.bfloat16
    assert torch.equal(half.lm_head.weight, full.lm_head.weight.bfloat16())


def test_a_copy_has_the_same_weights_in_its_own_tensors() -> None:
    source = scratch()
    copied = copy_model(source)

    with torch.no_grad():
        source.model.model.norm.weight.add_(1.0)

    assert marks(copied) == marks(scratch())
    assert copied.tokenizer is source.tokenizer


def test_a_section_without_weights_of_its_own_is_refused() -> None:
    section = SnapshotModel(type="snapshot", of="actor")

    with pytest.raises(ModelUnavailable, match="snapshot"):
        build_model(section, seed=0, root=HERE)


# Folders


def pretrained(path: str, root: Path, **options: object) -> LoadedModel:
    section = PretrainedModel.model_validate({"type": "pretrained", "path": path, **options})
    return build_model(section, seed=0, root=root)


def test_a_saved_model_is_loaded_from_a_path_relative_to_the_root(tmp_path: Path) -> None:
    saved = scratch(seed=5)
    save_hf(tmp_path / "model", saved.model, saved.tokenizer)

    loaded = pretrained("model", tmp_path)

    assert marks(loaded) == marks(saved)
    assert loaded.tokenizer("1+1")["input_ids"] == saved.tokenizer("1+1")["input_ids"]


def test_pickled_weights_are_refused_with_the_reason(tmp_path: Path) -> None:
    saved = scratch()
    save_hf(tmp_path / "model", saved.model, saved.tokenizer)
    (tmp_path / "model" / "model.safetensors").unlink()
    torch.save(saved.model.state_dict(), tmp_path / "model" / "pytorch_model.bin")

    with pytest.raises(ModelUnavailable, match=r"pytorch_model\.bin, a pickle"):
        pretrained("model", tmp_path)


def test_a_folder_without_config_weights_or_model_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "no-weights").mkdir()
    (tmp_path / "no-weights" / "config.json").write_text("{}", encoding="utf-8")
    (tmp_path / "adapter").mkdir()
    (tmp_path / "adapter" / "adapter_config.json").write_text("{}", encoding="utf-8")
    (tmp_path / "file.txt").write_text("", encoding="utf-8")

    for path, reason in {
        "empty": "no config.json",
        "no-weights": "no weights",
        "adapter": "adapter",
        "file.txt": "is a file",
        "/no/such/folder": "there is no folder /no/such/folder",
    }.items():
        with pytest.raises(ModelUnavailable, match=reason):
            pretrained(path, tmp_path)


def test_damaged_weights_end_in_one_clear_error(tmp_path: Path) -> None:
    saved = scratch()
    save_hf(tmp_path / "model", saved.model, saved.tokenizer)
    weights = tmp_path / "model" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])

    with pytest.raises(ModelUnavailable, match=r"model\.safetensors has 1000 bytes"):
        pretrained("model", tmp_path)


@pytest.mark.parametrize("cut", [0, 4, 1, -1])
def test_a_file_of_weights_that_was_cut_is_named(tmp_path: Path, cut: int) -> None:
    saved = scratch()
    save_hf(tmp_path / "model", saved.model, saved.tokenizer)
    weights = tmp_path / "model" / "model.safetensors"
    assert damage_of_weights(weights) is None

    weights.write_bytes(weights.read_bytes()[:cut])

    with pytest.raises(ModelUnavailable, match=r"model/model\.safetensors has"):
        find_source("model", tmp_path)
    with pytest.raises(CheckpointError, match=r"model/model\.safetensors has"):
        load_weights(tmp_path / "model")


def test_a_changed_bit_of_a_checkpoint_that_a_model_begins_with_is_named(tmp_path: Path) -> None:
    saved, step = scratch(), tmp_path / "step-4"
    save_hf(step / "actor", saved.model, saved.tokenizer)
    weights = step / "actor" / "model.safetensors"
    content = bytearray(weights.read_bytes())
    hashes = {"actor/model.safetensors": hashlib.sha256(content).hexdigest()}
    (step / "manifest.json").write_text(json.dumps({"hashes": hashes}))
    assert pretrained("step-4/actor", tmp_path)
    content[-1] ^= 1

    weights.write_bytes(content)

    with pytest.raises(ModelUnavailable, match=r"model\.safetensors was changed after"):
        pretrained("step-4/actor", tmp_path)


def test_a_hub_id_is_told_from_a_missing_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))

    with pytest.raises(ModelUnavailable, match="`coloop models download some-owner/some-model`"):
        pretrained("some-owner/some-model", tmp_path)
    with pytest.raises(ModelUnavailable, match="there is no folder"):
        find_source("models/of/mine", tmp_path)


def test_what_is_not_yet_runnable_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"not yet runnable: model\.quantization"):
        pretrained("model", tmp_path, quantization="nf4")


@pytest.mark.network
def test_a_hub_model_is_loaded_where_there_is_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    name = "hf-internal-testing/tiny-random-LlamaForCausalLM"
    download(describe_model(name).repo)

    loaded = pretrained(name, tmp_path)

    assert loaded.model.config.model_type == "llama"
