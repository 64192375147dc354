"""The README's table of packages: its versions are those that are installed or read."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| (?P<use>[^|]+) \| (?P<package>[\w.-]+)[^|]* \| (?P<version>[^|]+) \|", re.M)


def rows() -> list[tuple[str, str]]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = text.split("## Works with")[1].split("\n## ")[0]
    found = [(row["package"], row["version"].strip("` ")) for row in ROW.finditer(table)]
    return [row for row in found if row[0] not in ("package", "Slurm", "KubeRay")]


def known() -> dict[str, str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    wanted = [*project["dependencies"], *(one for extra in extras for one in extra)]
    locked = (ROOT / "requirements.lock").read_text(encoding="utf-8").split()
    installed = re.findall(r"[\w.-]+==[\w.-]+", (ROOT / "Makefile").read_text(encoding="utf-8"))
    versions: dict[str, str] = {}
    for text in [*installed, *locked, *wanted]:
        if found := re.match(r"([\w.-]+)(?:\[[^\]]*\])?((?:==|>=).+)$", text):
            versions[found[1]] = found[2].removeprefix("==")
    return versions


def configurations_of(name: str) -> str:
    """What the module that reads configurations of a framework says of itself."""
    path = ROOT / "engine" / "coloop" / "interop" / f"{name}.py"
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


@pytest.mark.parametrize(("package", "version"), rows())
def test_a_version_is_the_one_that_is_used(package: str, version: str) -> None:
    if package == "trl":
        assert version in configurations_of(package)
    else:
        assert known()[package] == version


def test_every_package_of_an_environment_tracker_or_engine_is_listed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = ("vllm", "deepspeed", "reasoning-gym", "textarena", "wandb", "tensorboard", "mlflow")
    listed = {package for package, _ in rows()}
    for extra in extras:
        first = re.match(r"[\w-]+", project["optional-dependencies"][extra][0])
        assert first is not None
        assert first[0] in listed, extra
