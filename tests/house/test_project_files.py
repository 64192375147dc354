"""Files around the code: guides name what exists, GitHub's files have the keys that it asks for."""

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer
from hatchling.builders.wheel import WheelBuilder
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager
from ruamel.yaml import YAML

from coloop.cli.app import app, build_command
from coloop.spec.io import parse, patch
from coloop.validate import validate

ROOT = Path(__file__).resolve().parents[2]
GITHUB = ROOT / ".github"
GUIDES = ("AGENTS.md", "CONTRIBUTING.md")
PAGES = (*GUIDES, "CHANGELOG.md", "CODE_OF_CONDUCT.md", "SECURITY.md")
WORKFLOWS = sorted(GITHUB.glob("workflows/*.yml"))
FORMS = sorted(path for path in GITHUB.glob("ISSUE_TEMPLATE/*.yml") if path.stem != "config")
LINK = re.compile(r"\]\((?!https?://|#)([^)\s]+)\)")
NAMED = re.compile(r"`(\.?(?:github|engine|backend|frontend|presets|tests|tools|docs)/[\w./-]*)`")
COMMAND = re.compile(r"(?:^|[`(])(?:\$ )?(coloop [a-z][^`\n;]*)", re.MULTILINE)
TARGET = re.compile(r"(?:^|`)make ([a-z][a-z-]+)(?=[` ]|$)", re.MULTILINE)
OPTION = re.compile(r"^--?[a-z][a-z-]*$")
ELEMENTS = {"markdown", "input", "textarea", "dropdown", "checkboxes"}


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def read(path: Path) -> Any:
    return YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))


def fenced(name: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page(name), re.DOTALL | re.MULTILINE)


def in_code(name: str) -> str:
    """What stands in fences and in backquotes, where words are commands."""
    text = page(name)
    fences = [*fenced(name, "bash"), *fenced(name, "console")]
    return "\n".join([*fences, *re.findall(r"`[^`\n]+`", re.sub(r"(?s)```.*?```", "", text))])


@pytest.mark.parametrize("name", PAGES)
def test_what_a_page_links_and_names_is_there(name: str) -> None:
    found = [*LINK.findall(page(name)), *NAMED.findall(page(name))]

    assert not [one for one in found if not (ROOT / one.partition("#")[0]).exists()]


@pytest.mark.parametrize("name", GUIDES)
def test_targets_of_make_exist(name: str) -> None:
    known = set(re.findall(r"^([a-z][a-z-]*):", page("Makefile"), re.MULTILINE))
    named = set(TARGET.findall(in_code(name)))

    assert "setup" in named
    assert named <= known


@pytest.mark.parametrize("name", GUIDES)
def test_commands_exist_with_their_options(name: str) -> None:
    commands = COMMAND.findall(in_code(name))
    wrong = [problem for one in commands if (problem := wrong_in(one))]

    assert commands or name != "AGENTS.md"
    assert not wrong


def wrong_in(command: str) -> str | None:
    """What of a command line does not exist."""
    words = shlex.split(command.partition(" > ")[0].partition(" | ")[0])[1:]
    group: Any = typer.main.get_command(app)
    while words and hasattr(group, "commands"):
        known = set(group.commands)
        if words[0] not in known:
            break
        name = words.pop(0)
        group = build_command(name) if group.name == "coloop" else group.commands[name]
    if hasattr(group, "commands") and (group.name == "coloop" or is_word(words)):
        return f"{command}: no such command"
    options = {option for param in group.params for option in param.opts} | {"--help"}
    unknown = [word for word in words if OPTION.match(word) and word not in options | {"-"}]
    return f"{command}: {', '.join(unknown)}" if unknown else None


def is_word(words: list[str]) -> bool:
    return bool(words) and not words[0].startswith("-")


def test_the_fixes_of_the_example_for_agents_make_it_valid() -> None:
    text, codes = fenced("AGENTS.md", "yaml")[0], []
    for _ in range(3):
        parsed = parse(text)
        found = [*parsed.diagnostics]
        if parsed.spec is not None:
            found += validate(parsed.spec, root=ROOT).errors
        errors = [one for one in found if one.is_error]
        if not errors:
            break
        codes.append(errors[0].code)
        text = patch(text, errors[0].fixes[0].changes)

    assert codes == ["structure.unknown_field", "learning.no_goal"]
    assert not errors


def test_the_script_for_agents_is_python() -> None:
    (script,) = fenced("AGENTS.md", "python")

    compile(script, "apply_fix.py", "exec")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_has_what_github_asks_for(path: Path) -> None:
    workflow = read(path)

    assert set(workflow) >= {"name", "on", "permissions", "jobs"}
    for job in workflow["jobs"].values():
        assert {"runs-on", "steps", "timeout-minutes"} <= set(job)
        assert job.get("needs") in {None, *workflow["jobs"]}
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)
            assert "@" in step.get("uses", "@")


@pytest.mark.parametrize(("name", "command"), [("test", "test"), ("nightly", "test-slow")])
def test_the_tests_run_as_the_readme_says(name: str, command: str) -> None:
    (job,) = read(GITHUB / "workflows" / f"{name}.yml")["jobs"].values()
    options = {key: value for step in job["steps"] for key, value in step.get("with", {}).items()}

    assert job["steps"][-1]["run"] == f"make {command}"
    assert options["python-version"] == "3.11"
    assert options["node-version"] == "20"
    assert (ROOT / options["cache-dependency-path"]).is_file()


def test_a_release_has_few_rights_and_no_password() -> None:
    workflow = read(GITHUB / "workflows" / "release.yml")
    jobs = workflow["jobs"]
    publishing = jobs["pypi"]["steps"][-1]

    assert workflow["on"] == {"push": {"tags": ["v*"]}}
    assert workflow["permissions"] == {"contents": "read"}
    assert jobs["pypi"]["permissions"] == {"id-token": "write"}
    assert jobs["image"]["permissions"] == {"contents": "read", "packages": "write"}
    assert publishing["uses"].startswith("pypa/gh-action-pypi-publish@")
    assert "password" not in publishing.get("with", {})


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_an_issue_form_has_what_github_asks_for(path: Path) -> None:
    form = read(path)
    asked = [one for one in form["body"] if one["type"] != "markdown"]

    assert form["name"]
    assert form["description"]
    assert asked
    assert {one["type"] for one in form["body"]} <= ELEMENTS
    assert len({one["id"] for one in asked}) == len(asked)
    assert all(one["attributes"]["label"] for one in asked)
    assert any(one.get("validations", {}).get("required") for one in asked)


def test_there_are_forms_and_workflows() -> None:
    assert [path.stem for path in FORMS] == ["bug", "feature"]
    assert [path.stem for path in WORKFLOWS] == ["nightly", "release", "test"]
    assert "blank_issues_enabled" in read(GITHUB / "ISSUE_TEMPLATE" / "config.yml")
    assert (GITHUB / "pull_request_template.md").is_file()


def test_dependabot_looks_where_dependencies_are() -> None:
    settings = read(GITHUB / "dependabot.yml")
    watched = {one["package-ecosystem"]: one["directory"] for one in settings["updates"]}

    assert settings["version"] == 2
    assert watched == {"pip": "/", "npm": "/frontend", "github-actions": "/", "docker": "/"}
    assert all(one["schedule"]["interval"] for one in settings["updates"])


def test_the_wheel_says_that_it_is_typed() -> None:
    builder = WheelBuilder(str(ROOT))
    shipped = {one.distribution_path for one in builder.recurse_included_files()}

    assert {"coloop/py.typed", "coloop_server/py.typed"} <= shipped


def test_the_metadata_is_valid_and_the_base_small() -> None:
    core = ProjectMetadata(str(ROOT), PluginManager()).core
    base = " ".join(core.dependencies)

    assert "Typing :: Typed" in core.classifiers
    assert core.keywords
    assert not re.search(r"\b(torch|ray|numpy|transformers|vllm)\b", base)


def test_torch_and_ray_are_ranges_that_hold_what_is_locked() -> None:
    extras = tomllib.loads(page("pyproject.toml"))["project"]["optional-dependencies"]
    locked = dict(re.findall(r"^([\w.-]+)==([\w.]+)", page("requirements.lock"), re.MULTILINE))
    for name in ("torch", "ray"):
        (asked,) = [one for one in extras["engine"] if re.match(rf"{name}\b", one)]
        least, below = re.findall(r"[\d.]+", asked.partition("]")[2] or asked)

        assert numbers(least) <= numbers(locked[name]) < numbers(below)


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
