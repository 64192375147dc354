"""READMEs tell the truth: paths that they name exist, commands that they show work."""

import re
import shlex
from pathlib import Path

import pytest
from tests.forked import run

ROOT = Path(__file__).resolve().parents[2]
PATH = re.compile(
    r"\]\((?!https?://|#)([^)\s]+)\)|`((?:engine|backend|frontend|presets|tests|tools)/[\w./*-]+)`"
)
COMMAND = re.compile(r"^(?:\$ )?(coloop .+)$", re.MULTILINE)
FENCE = re.compile(r"```(?:sh|bash|console)\n(.*?)```", re.DOTALL)
LIGHT_COMMANDS = {"validate", "explain", "estimate", "plan", "presets", "schema", "doctor", "runs"}


def readmes() -> list[Path]:
    skipped = {"node_modules", ".venv", ".venv-vllm", "dist", "_static"}
    return sorted(
        path for path in ROOT.rglob("README.md") if not skipped & set(path.relative_to(ROOT).parts)
    )


@pytest.mark.parametrize("readme", readmes(), ids=lambda path: str(path.relative_to(ROOT)))
def test_paths_exist(readme: Path) -> None:
    text = readme.read_text(encoding="utf-8")
    missing = []
    for link, code in PATH.findall(text):
        name = (link or code).partition("#")[0]
        bases = [readme.parent] if link else [ROOT, readme.parent]
        if name and "*" not in name and not any((base / name).exists() for base in bases):
            missing.append(name)

    assert not missing


def shown_commands() -> list[str]:
    """Those of READMEs, but of examples, whose commands need the example to be installed."""
    found = []
    for readme in readmes():
        if ROOT / "examples" in readme.parents:
            continue
        for block in FENCE.findall(readme.read_text(encoding="utf-8")):
            for command in COMMAND.findall(block):
                words = shlex.split(command.partition("#")[0])
                if len(words) > 1 and words[1] in LIGHT_COMMANDS and "<" not in command:
                    found.append(shlex.join(words))
    return sorted(set(found))


@pytest.mark.parametrize("command", shown_commands())
def test_commands_work(command: str, tmp_path: Path) -> None:
    words = shlex.split(command)

    done = run("-m", "coloop", *words[1:], cwd=tmp_path, timeout=120)

    assert done.returncode == 0, done.stderr


def test_the_readme_shows_both_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")

    assert "make run" in text
    assert "make test" in text


def test_the_places_where_to_add_something_are_there() -> None:
    package = ROOT / "engine" / "coloop"
    text = (package / "README.md").read_text(encoding="utf-8")
    table = text.partition("## Where to add something")[2]
    rows = [line for line in table.splitlines() if line.startswith("| a")]
    missing = []
    for row in rows:
        for path in re.findall(r"`([\w/]+(?:\.py|/))`", row):
            if not (package / path).exists() and not (ROOT / path).exists():
                missing.append(path)
        for name, path in re.findall(r"`([A-Z]\w+)` \(`([\w/]+\.py)`\)", row):
            if not re.search(rf"\b{name}\b", (package / path).read_text(encoding="utf-8")):
                missing.append(f"{name} in {path}")

    assert len(rows) >= len(("node kind", "engine", "backend", "algorithm", "reward"))
    assert not missing
