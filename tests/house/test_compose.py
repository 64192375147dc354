"""docker-compose.yml is well formed, closed by a token, and names what exists."""

import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "docker-compose.yml"
SCHEMA = Path(__file__).parent / "compose_spec.schema.json"
SECRETS = {
    "COLOOP_TOKEN": "token",
    "POSTGRES_PASSWORD": "password",
    "RAY_AUTH_TOKEN": "ray",
}
VARIABLE = re.compile(r"\$\{(?P<name>\w+)(?::(?P<kind>[-?])(?P<rest>[^}]*))?\}")


def fill(value: Any, environment: dict[str, str]) -> Any:
    """Compose's variables filled in, as `docker compose config` does."""
    match value:
        case str():
            return VARIABLE.sub(lambda found: fill_one(found, environment), value)
        case list():
            return [fill(item, environment) for item in value]
        case dict():
            return {key: fill(item, environment) for key, item in value.items()}
    return value


def fill_one(found: re.Match[str], environment: dict[str, str]) -> str:
    name, kind, rest = found["name"], found["kind"], found["rest"]
    if environment.get(name):
        return environment[name]
    if kind == "?":
        raise LookupError(f"{name}: {rest}")
    return rest or ""


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    """The file with its secrets set."""
    filled: dict[str, Any] = fill(read(), SECRETS)
    return filled


def read() -> Any:
    return YAML(typ="safe", pure=True).load(FILE.read_text(encoding="utf-8"))


def has_docker_compose() -> bool:
    if shutil.which("docker") is None:
        return False
    asked = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
    return asked.returncode == 0


def config(*options: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["docker", "compose", *options, "-f", str(FILE), "config", "--quiet"],
        env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.skipif(not has_docker_compose(), reason="docker compose is not installed")
def test_docker_compose_accepts_the_file() -> None:
    for profile in ([], ["--profile", "gpu"]):
        asked = config(*profile, environment=SECRETS)
        assert asked.returncode == 0, asked.stderr


@pytest.mark.skipif(not has_docker_compose(), reason="docker compose is not installed")
@pytest.mark.parametrize("secret", SECRETS)
def test_docker_compose_refuses_a_missing_secret(secret: str) -> None:
    rest = {name: value for name, value in SECRETS.items() if name != secret}

    asked = config(environment=rest)

    assert asked.returncode != 0
    assert secret in asked.stderr


def test_the_file_meets_the_compose_specification(compose: dict[str, Any]) -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))

    jsonschema.Draft7Validator(schema).validate(compose)


@pytest.mark.parametrize("secret", SECRETS)
def test_nothing_starts_without_its_secrets(secret: str) -> None:
    rest = {name: value for name, value in SECRETS.items() if name != secret}

    with pytest.raises(LookupError, match=secret):
        fill(read(), rest)


def test_the_services_are_those_of_the_design(compose: dict[str, Any]) -> None:
    services = compose["services"]

    assert set(services) == {"server", "postgres", "ray-head", "ray-gpu"}
    assert [name for name, one in services.items() if one.get("profiles")] == ["ray-gpu"]
    assert services["ray-gpu"]["profiles"] == ["gpu"]
    devices = services["ray-gpu"]["deploy"]["resources"]["reservations"]["devices"]
    assert devices[0]["capabilities"] == ["gpu"]


def test_the_server_has_a_token_a_database_and_is_published_to_this_machine_only(
    compose: dict[str, Any],
) -> None:
    services = compose["services"]
    environment = services["server"]["environment"]

    assert environment["COLOOP_TOKEN"] == "token"
    assert environment["COLOOP_DATABASE_URL"].startswith("postgresql://coloop:password@postgres/")
    assert services["server"]["ports"] == ["127.0.0.1:8321:8321"]
    assert not any(one.get("ports") for name, one in services.items() if name != "server")
    for name in ("server", "ray-head", "ray-gpu"):
        assert services[name]["environment"]["RAY_AUTH_MODE"] == "token"


def test_everything_that_is_named_exists(compose: dict[str, Any]) -> None:
    services = compose["services"]

    for name, one in services.items():
        assert set(one.get("depends_on", {})) <= set(services), name
        for volume in one.get("volumes", ()):
            source = volume.split(":")[0]
            assert source.startswith("./") or source in compose["volumes"], volume
        for needed, how in one.get("depends_on", {}).items():
            assert how["condition"] != "service_healthy" or "healthcheck" in services[needed]


def test_every_setting_of_the_server_is_one() -> None:
    from coloop_server.settings import Settings

    text = FILE.read_text(encoding="utf-8")
    named = set(re.findall(r"^\s+(COLOOP_\w+):", text, re.MULTILINE)) - {"COLOOP_TORCH_INDEX"}

    known = {f"COLOOP_{name.upper()}" for name in Settings.model_fields}
    assert named <= known


def test_the_image_installs_extras_that_exist() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    extras = re.findall(r"\.\[([\w,]+)\]", text)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert extras

    assert set(extras[0].split(",")) <= set(project["optional-dependencies"])


def test_the_image_copies_what_is_there() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    copies = re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE)
    assert copies

    for sources in copies:
        for source in sources.split():
            assert (ROOT / source).exists(), source
