"""Makes a student of half the size beside a model's folder: every second layer, the rest as it is.

    python -m tests.experiments.real.make_student [smollm2-135m]

writes the folder `<name>-half`, with the same tokenizer and chat template.
"""

import json
import shutil
import sys
from pathlib import Path

from safetensors.torch import load_file, save_file

from coloop.spec.model_folders import models_dir

SUFFIX = "-half"


def main(name: str = "smollm2-135m") -> Path:
    whole = models_dir() / name
    half = whole.with_name(name + SUFFIX)
    shutil.copytree(whole, half, dirs_exist_ok=True)
    config = json.loads((whole / "config.json").read_text(encoding="utf-8"))
    count = config["num_hidden_layers"] // 2
    (half / "config.json").write_text(
        json.dumps({**config, "num_hidden_layers": count}, indent=2), encoding="utf-8"
    )
    tensors = load_file(whole / "model.safetensors")
    kept = {}
    for key, tensor in tensors.items():
        parts = key.split(".")
        if "layers" in parts:
            place = parts.index("layers") + 1
            layer = int(parts[place])
            if layer % 2:
                continue
            parts[place] = str(layer // 2)
        kept[".".join(parts)] = tensor
    save_file(kept, half / "model.safetensors", metadata={"format": "pt"})
    return half


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
