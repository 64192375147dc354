"""Exports are read by the frameworks' own parsers; their options are those that are known here.

`make test-extras` installs the packages without what they depend on: configurations and sources are
read, and nothing of them is imported.
"""

import argparse
import ast
import importlib.util
import shlex
from pathlib import Path
from typing import Any

import pytest

from coloop.interop.settings import known_names
from coloop.interop.take import export_loop
from coloop.spec import presets
from coloop.spec.io import parse

WITH_VERL = ("dapo-qwen2.5-7b-16xH100", "grpo-qwen2.5-7b-8xH100", "one-step-off-qwen2.5-7b-16xH100")
WITH_OPENRLHF = ("ppo-learned-reward-llama-3.1-8b-8xH100", "reinforce-pp-llama-3.1-8b-8xH100")


def folder_of(package: str) -> Path:
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        pytest.skip(f"{package} is not installed; `make test-extras`")
    return Path(next(iter(found.submodule_search_locations)))


def words_of(preset: str, framework: str) -> list[str]:
    spec = parse(presets.load_loop_text(preset)).spec
    assert spec is not None
    command = export_loop(spec, framework).text.partition("\n")[2].replace("\\\n", " ")
    return shlex.split(command)[3:]


@pytest.mark.parametrize("preset", WITH_VERL)
def test_hydra_reads_what_is_written_for_verl(preset: str) -> None:
    hydra = pytest.importorskip("hydra", reason="`make test-extras`")
    folder = folder_of("verl") / "trainer" / "config"
    words = words_of(preset, "verl")

    with hydra.initialize_config_dir(str(folder), version_base=None):
        config: Any = hydra.compose("ppo_trainer", overrides=words)

    spec = parse(presets.load_loop_text(preset)).spec
    assert spec is not None
    actor = spec.nodes["actor"]
    rollout = actor.rollout  # type: ignore[union-attr]
    assert config.actor_rollout_ref.rollout.n == rollout.completions_per_prompt
    assert config.data.max_response_length == rollout.max_new_tokens


@pytest.mark.parametrize("preset", WITH_OPENRLHF)
def test_argparse_reads_what_is_written_for_openrlhf(preset: str) -> None:
    file = folder_of("openrlhf") / "cli" / "train_ppo_ray.py"
    parser = parser_in(file)
    arguments = vars(parser.parse_args(words_of(preset, "openrlhf")))

    assert arguments["actor.model_name_or_path"].startswith("meta-llama/")


def parser_in(file: Path) -> argparse.ArgumentParser:
    """The parser that a script builds, without what it imports."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    main = next(item for item in tree.body if isinstance(item, ast.If))
    kept = [
        item
        for item in main.body
        if "parser" in ast.unparse(item) and "parse_args" not in ast.unparse(item)
    ]
    source = "import argparse\nfrom datetime import datetime\n"
    space: dict[str, Any] = {}
    exec(source + ast.unparse(ast.Module(body=kept, type_ignores=[])), space)
    parser: argparse.ArgumentParser = space["parser"]
    return parser


def test_every_option_of_openrlhf_is_known() -> None:
    file = folder_of("openrlhf") / "cli" / "train_ppo_ray.py"
    options = {action.option_strings[0][2:] for action in parser_in(file)._actions[1:]}

    newest = {name for name, last in known_names("openrlhf").items() if not last}
    assert options <= newest
