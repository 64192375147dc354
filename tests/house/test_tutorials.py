"""Tutorials do what they say: their files are written and their commands run, in order."""

import json
import re
import shlex
from pathlib import Path

import pytest
from ruamel.yaml import YAML
from tests.forked import run
from tools.docs import page, sources

from coloop.models.build import build_config, build_scratch
from coloop.models.folder import save_hf
from coloop.models.tokenizer import character_tokenizer
from coloop.spec import presets

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
FENCE = re.compile(r"^```(\w*)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
QUICK = {"validate", "plan", "estimate", "doctor", "launch"}


def blocks(tutorial: Path) -> list[tuple[str, str, str]]:
    """Language, title and text of each fenced block."""
    return FENCE.findall(tutorial.read_text(encoding="utf-8"))


def commands(tutorial: Path) -> list[list[str]]:
    return [
        shlex.split(line)
        for language, _, text in blocks(tutorial)
        if language == "bash"
        for line in text.splitlines()
        if line
    ]


def prepare(tutorial: Path, folder: Path) -> None:
    """The files of the page, and the model that its reader has."""
    for _, title, text in blocks(tutorial):
        if title:
            (folder / title).write_text(text, encoding="utf-8")
    if "path: model}" in tutorial.read_text(encoding="utf-8"):
        tokenizer = character_tokenizer()
        config = build_config(presets.model("tiny-qwen3").architecture, tokenizer)
        model = build_scratch(config, seed=0)
        save_hf(folder / "model", model, tokenizer)


def perform(words: list[str], folder: Path) -> None:
    done = run("-m", *words, cwd=folder, timeout=600)
    assert done.returncode == 0, (
        f"{shlex.join(words)}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    )


@pytest.mark.parametrize("tutorial", PAGES, ids=lambda path: path.stem)
def test_loops_of_a_tutorial_are_valid(tutorial: Path, tmp_path: Path) -> None:
    prepare(tutorial, tmp_path)
    quick = [
        words for words in commands(tutorial) if words[1] in QUICK and "fitted" not in words[2:]
    ]

    assert any(words[1] == "validate" for words in quick)
    for words in quick:
        perform(words, tmp_path)


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.parametrize("tutorial", PAGES, ids=lambda path: path.stem)
def test_a_tutorial_runs_to_its_end(tutorial: Path, tmp_path: Path) -> None:
    prepare(tutorial, tmp_path)

    for words in commands(tutorial):
        perform(words, tmp_path)


@pytest.mark.slow
def test_the_first_reward_rises(tmp_path: Path) -> None:
    prepare(ROOT / "docs" / "tutorials" / "first-reward.md", tmp_path)

    perform(["coloop", "run", "digits.yaml", "--local", "--run-id", "first"], tmp_path)

    lines = (tmp_path / "runs" / "first" / "events.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    rewards = [
        event["metrics"]["reward/mean"]
        for event in events
        if event["type"] == "metrics" and "reward/mean" in event["metrics"]
    ]
    assert rewards[0] < 0.2
    assert min(rewards[-5:]) > 0.9


def pages(entry: object) -> list[str]:
    """Files that an entry of the site's navigation names."""
    if isinstance(entry, str):
        return [entry]
    parts = entry if isinstance(entry, list) else list(entry.values())  # type: ignore[attr-defined]
    return [page for part in parts for page in pages(part)]


def test_pages_of_the_site_exist() -> None:
    site = YAML(typ="safe").load(ROOT / "mkdocs.yml")
    named = set(pages(site["nav"]))

    assert not [page for page in named if not (ROOT / page).is_file()]
    assert {str(page.relative_to(ROOT)) for page in PAGES} <= named


@pytest.mark.slow
def test_links_of_the_site_stay_on_it() -> None:
    for source in sources():
        if source.suffix == ".md":
            for target in re.findall(r"\]\((?!https?://|#)([^)#\s]+)", page(source)):
                assert (ROOT / source.parent / target).resolve().relative_to(ROOT) in sources()
