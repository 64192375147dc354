"""What a checkpoint has learned, for other programs: a model folder in Hugging Face format.

OUT/            the model, an adapter merged into what it stands on
OUT/adapter/    the adapter by itself, as peft reads it
"""

from __future__ import annotations

import json
from pathlib import Path

from coloop.models.adapter_folder import ADAPTER_FILES, BASE_FOLDER, CONFIG, dtype_in, is_adapter
from coloop.models.folder import link_tree, save_hf, written_aside
from coloop.models.pretrained import load_pretrained


def export_model(folder: Path, out: Path) -> None:
    """Writes the weights of a checkpoint's folder to another one, which it replaces.

    Raises `CheckpointError`, `StorageFull`, `ModelUnavailable`.
    """
    if not is_adapter(folder):
        with written_aside(out) as aside:
            link_tree(folder, aside, without=("*.pt",), copies=True)
        return
    model, tokenizer = load_pretrained(str(folder), folder, dtype=dtype_in(folder))
    save_hf(out, model, tokenizer)
    with written_aside(out / "adapter") as aside:
        for name in ADAPTER_FILES:
            (aside / name).write_bytes((folder / name).read_bytes())
        config = json.loads((aside / CONFIG).read_text(encoding="utf-8"))
        config["base_model_name_or_path"] = str((folder / BASE_FOLDER).resolve())
        (aside / CONFIG).write_text(json.dumps(config, indent=2), encoding="utf-8")
