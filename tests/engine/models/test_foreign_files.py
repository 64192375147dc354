"""Model folders of somebody else: pickles, files elsewhere and other models are never loaded."""

import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from coloop.errors import CheckpointError, ColoopError, ModelUnavailable
from coloop.models import build_model, save_hf
from coloop.models.folder import load_weights, read_adapter
from coloop.models.pretrained import find_source, load_outline
from coloop.spec.model import PretrainedModel, ScratchModel

pytestmark = pytest.mark.attack


class Bomb:
    """A pickle that leaves a mark when it is loaded."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.mark,))


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """What is there after a pickle was loaded."""
    return tmp_path / "mark"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A sound model."""
    section = ScratchModel.model_validate({"type": "scratch", "architecture": "tiny-qwen3"})
    made = build_model(section, seed=0, root=tmp_path)
    save_hf(tmp_path / "model", made.model, made.tokenizer)
    return tmp_path / "model"


def load(folder: Path) -> None:
    section = PretrainedModel.model_validate({"type": "pretrained", "path": str(folder)})
    build_model(section, seed=0, root=folder.parent)


def write_bomb(path: Path, mark: Path) -> None:
    path.write_bytes(pickle.dumps(Bomb(mark)))


def write_index(folder: Path, name: str) -> None:
    weights = {"model.embed_tokens.weight": name}
    text = json.dumps({"metadata": {}, "weight_map": weights})
    (folder / "model.safetensors.index.json").write_text(text, encoding="utf-8")


def test_a_bomb_does_go_off_where_it_is_loaded(tmp_path: Path, mark: Path) -> None:
    write_bomb(tmp_path / "bomb.pkl", mark)

    pickle.loads((tmp_path / "bomb.pkl").read_bytes())

    assert mark.exists()


@pytest.mark.parametrize(
    "name", ["pytorch_model.bin", "model.pt", "weights.pkl", "model.ckpt", "a.pth", "a.pickle"]
)
def test_weights_that_are_a_pickle_are_refused(folder: Path, mark: Path, name: str) -> None:
    (folder / "model.safetensors").unlink()
    write_bomb(folder / name, mark)

    with pytest.raises(ModelUnavailable, match="a pickle that could run any code"):
        load(folder)

    assert not mark.exists()


@pytest.mark.parametrize("name", ["pytorch_model.bin", "../outside.safetensors", "/tmp/a", "."])
def test_an_index_that_names_other_files_is_refused(folder: Path, mark: Path, name: str) -> None:
    (folder / "model.safetensors").rename(folder.parent / "outside.safetensors")
    save_file({"a": torch.zeros(1)}, folder / "unused.safetensors")
    write_bomb(folder / "pytorch_model.bin", mark)
    write_index(folder, name)

    with pytest.raises(ModelUnavailable, match=r"index\.json names"):
        load(folder)

    assert not mark.exists()


@pytest.mark.parametrize(
    "name", ["../outside.safetensors", "/tmp/outside.safetensors", "a/b.safetensors"]
)
def test_a_checkpoint_reads_no_file_elsewhere(folder: Path, name: str) -> None:
    (folder / "model.safetensors").rename(folder.parent / "outside.safetensors")
    write_index(folder, name)

    with pytest.raises(CheckpointError, match="are not beside it"):
        load_weights(folder)


@pytest.mark.parametrize("text", ["[]", "{}", "{", '{"weight_map": 1}', '{"weight_map": {"a": 1}}'])
def test_an_index_that_is_none_is_refused(folder: Path, text: str) -> None:
    (folder / "model.safetensors.index.json").write_text(text, encoding="utf-8")

    with pytest.raises(ModelUnavailable, match=r"index\.json"):
        load(folder)


def test_a_shard_that_is_a_pickle_under_another_name_is_not_unpickled(
    folder: Path, mark: Path
) -> None:
    write_bomb(folder / "model.safetensors", mark)

    with pytest.raises(ModelUnavailable):
        load(folder)

    assert not mark.exists()


def test_a_model_whose_folder_names_another_model_is_refused(folder: Path) -> None:
    shutil.copytree(folder, folder.parent / "elsewhere")
    config = {"peft_type": "LORA", "base_model_name_or_path": str(folder.parent / "elsewhere")}
    (folder / "adapter_config.json").write_text(json.dumps(config), encoding="utf-8")

    with pytest.raises(ModelUnavailable, match="replace it with another model"):
        find_source(str(folder), folder.parent)


def test_a_base_that_names_another_model_is_refused(folder: Path) -> None:
    shutil.copytree(folder, folder.parent / "adapter" / "base")
    adapter = folder.parent / "adapter"
    shutil.copy(folder / "config.json", adapter)
    save_file({"a": torch.zeros(1)}, adapter / "adapter_model.safetensors")
    for place in (adapter, adapter / "base"):
        (place / "adapter_config.json").write_text("{}", encoding="utf-8")

    with pytest.raises(ModelUnavailable, match="replace it with another model"):
        find_source(str(adapter), folder.parent)


def test_an_adapter_that_is_a_pickle_is_refused(folder: Path, mark: Path) -> None:
    adapter = folder.parent / "adapter"
    shutil.copytree(folder, adapter / "base")
    shutil.copy(folder / "config.json", adapter)
    (adapter / "adapter_config.json").write_text('{"r": 1, "lora_alpha": 1}', encoding="utf-8")
    write_bomb(adapter / "adapter_model.bin", mark)

    with pytest.raises(ModelUnavailable, match=r"adapter_model\.bin, a pickle"):
        load(adapter)
    with pytest.raises(ColoopError):
        read_adapter(adapter)

    assert not mark.exists()


def test_code_of_a_model_is_refused_without_its_setting(folder: Path, mark: Path) -> None:
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config |= {"auto_map": {"AutoConfig": "own.Config", "AutoModelForCausalLM": "own.Model"}}
    config |= {"model_type": "own"}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "own.py").write_text(f"open({str(mark)!r}, 'w')\n", encoding="utf-8")

    with pytest.raises(ModelUnavailable):
        load(folder)

    assert not mark.exists()


def tell_tokenizer(folder: Path, file: str, told: dict[str, Any]) -> None:
    """Write fields into a file of the tokenizer's settings."""
    path = folder / file
    held = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    path.write_text(json.dumps(held | told), encoding="utf-8")


SETTINGS, TOKENS = "tokenizer_config.json", "special_tokens_map.json"


@pytest.mark.parametrize(
    ("file", "told"),
    [
        (SETTINGS, {"tokenizer_class": "BertTokenizer", "vocab": "DIARY"}),
        (SETTINGS, {"tokenizer_class": "BertTokenizer", "init_inputs": ["DIARY"]}),
        (SETTINGS, {"tokenizer_class": "GPT2Tokenizer", "merges": "DIARY"}),
        (SETTINGS, {"fast_tokenizer_files": ["../private/tokenizer.4.0.0.json"]}),
        (TOKENS, {"tokenizer_file": "DIARY"}),
        (TOKENS, {"vocab_file": "DIARY"}),
        (TOKENS, {"vocab": "DIARY"}),
    ],
)
def test_settings_of_a_tokenizer_name_no_files_elsewhere(
    folder: Path, tmp_path: Path, file: str, told: dict[str, Any]
) -> None:
    private = tmp_path / "private"
    private.mkdir()
    (private / "diary").write_text("nobody else\nmay read this\n[UNK]\n", encoding="utf-8")
    shutil.copyfile(folder / "tokenizer.json", private / "tokenizer.4.0.0.json")
    if "tokenizer_class" in told or file == TOKENS:
        (folder / "tokenizer.json").unlink()
    tell_tokenizer(folder, SETTINGS, {"tokenizer_class": "BertTokenizer"} if file == TOKENS else {})
    text = json.dumps(told).replace("DIARY", str(private / "diary"))
    tell_tokenizer(folder, file, json.loads(text))

    for look in (load, lambda folder: load_outline(str(folder), folder.parent)):
        with pytest.raises(ModelUnavailable, match=rf"{file} names .*, (not a file|which)"):
            look(folder)


def test_settings_of_a_tokenizer_that_others_wrote_are_read(folder: Path) -> None:
    """Older tools leave paths of their own machine there, which nobody opens."""
    there = "/home/somebody/.cache/huggingface/special_tokens_map.json"
    tell_tokenizer(folder, SETTINGS, {"special_tokens_map_file": there, "init_inputs": []})
    tell_tokenizer(folder, SETTINGS, {"tokenizer_file": None, "name_or_path": there})
    tell_tokenizer(folder, TOKENS, {"eos_token": "⟨eos⟩", "additional_special_tokens": []})

    load(folder)
