"""Names of the settings of TRL, verl, OpenRLHF and prime-rl, from their sources.

    python tools/foreign_names.py verl 0.9.1=verl-0.9.1 0.8.0=verl-0.8.0 > names/verl.txt

writes a file of `engine/coloop/interop/names`. Each VERSION=FOLDER is an unpacked wheel, the newest
first. A line is a name, with the last version that had it where the newest has it no more. Sources
are read and not run.
"""

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

TRL_CONFIGS = ("GRPO", "DPO", "SFT", "Reward", "KTO", "RLOO", "Distillation", "GKD", "PPO")


def verl(root: Path) -> Iterator[str]:
    """Dotted names of every flattened configuration."""
    for file in sorted((root / "verl/trainer/config").glob("**/*.yaml")):
        if file.name.startswith(("_generated_", "ppo_")):
            data = yaml.safe_load(file.read_text(encoding="utf-8"))
            yield from flattened(data)


def flattened(data: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in data.items():
        if key in ("_target_", "defaults", "hydra"):
            continue
        if isinstance(value, Mapping) and value:
            yield from flattened(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


def openrlhf(root: Path) -> Iterator[str]:
    """Options of every trainer's argument parser."""
    for file in sorted(root.rglob("openrlhf/cli/train_*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "add_argument":
                yield from options(call.args[0])


def options(name: ast.expr) -> Iterator[str]:
    match name:
        case ast.Constant(value=str(text)):
            yield text.removeprefix("--")
        case ast.JoinedStr():
            for role in ("actor", "critic"):
                parts = [
                    role if isinstance(part, ast.FormattedValue) else str(part.value)  # type: ignore[attr-defined]
                    for part in name.values
                ]
                yield "".join(parts).removeprefix("--")


def trl(root: Path) -> Iterator[str]:
    """Fields of the configurations of every trainer, and of what scripts are given beside them."""
    names = {f"{name}Config" for name in TRL_CONFIGS} | {"_BaseConfig", "ModelConfig"}
    names |= {"ScriptArguments", "OnPolicyConfig", "TrainingArguments", "DatasetMixtureConfig"}
    for file in sorted([*root.rglob("trl/**/*.py"), *root.rglob("transformers/training_args.py")]):
        for item in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(item, ast.ClassDef) and item.name in names:
                for field in item.body:
                    if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                        yield field.target.id


READERS = {"verl": verl, "openrlhf": openrlhf, "trl": trl}


def lines(reader: str, versions: Iterable[tuple[str, Path]]) -> list[str]:
    newest: set[str] = set()
    last: dict[str, str] = {}
    for number, (version, root) in enumerate(versions):
        names = set(READERS[reader](root))
        if number == 0:
            newest = names
        for name in names - newest:
            last.setdefault(name, version)
    return sorted([*newest, *(f"{name} {version}" for name, version in last.items())])


def main() -> None:
    reader, *given = sys.argv[1:]
    versions = [
        (version, Path(folder)) for version, _, folder in (item.partition("=") for item in given)
    ]
    sys.stdout.write("".join(f"{line}\n" for line in lines(reader, versions)))


if __name__ == "__main__":
    main()
