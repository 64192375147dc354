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
SECRETS = ("coloop_token", "coloop_database_url", "postgres_password", "ray_auth_token")
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
    """The file with its variables filled in."""
    filled: dict[str, Any] = fill(read(), {})
    return filled


def read() -> Any:
    return YAML(typ="safe", pure=True).load(FILE.read_text(encoding="utf-8"))


def has_docker_compose() -> bool:
    if shutil.which("docker") is None:
        return False
    asked = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
    return asked.returncode == 0


def config(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["docker", "compose", *options, "-f", str(FILE), "config", "--quiet"],
        env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.skipif(not has_docker_compose(), reason="docker compose is not installed")
def test_docker_compose_accepts_the_file() -> None:
    for profile in ([], ["--profile", "gpu"], ["--profile", "tls"]):
        asked = config(*profile)
        assert asked.returncode == 0, asked.stderr


@pytest.mark.skipif(shutil.which("caddy") is None, reason="Caddy is not installed")
def test_caddy_accepts_its_file() -> None:
    asked = subprocess.run(
        ["caddy", "validate", "--adapter", "caddyfile", "--config", str(ROOT / "deploy/Caddyfile")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert asked.returncode == 0, asked.stderr


def test_the_file_meets_the_compose_specification(compose: dict[str, Any]) -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))

    jsonschema.Draft7Validator(schema).validate(compose)


def test_secrets_are_files_and_stand_nowhere_else(compose: dict[str, Any]) -> None:
    declared = compose["secrets"]
    text = FILE.read_text(encoding="utf-8")

    assert {name: one["file"] for name, one in declared.items()} == {
        name: f"./secrets/{name}" for name in SECRETS
    }
    assert compose["services"]["server"]["environment"]["COLOOP_SECRETS_DIR"] == "/run/secrets"
    assert not re.search(r"^\s+(COLOOP_TOKEN|POSTGRES_PASSWORD|RAY_AUTH_TOKEN|.*_URL):", text, re.M)
    for ignored in (".gitignore", ".dockerignore"):
        lines = (ROOT / ignored).read_text(encoding="utf-8").splitlines()
        assert "secrets" in {line.strip("/") for line in lines}


def test_each_service_gets_the_secrets_that_it_needs_alone(compose: dict[str, Any]) -> None:
    given = {name: set(one.get("secrets", ())) for name, one in compose["services"].items()}

    assert given == {
        "server": {"coloop_token", "coloop_database_url", "ray_auth_token"},
        "postgres": {"postgres_password"},
        "ray-head": {"ray_auth_token"},
        "ray-gpu": {"ray_auth_token"},
        "tls": set(),
    }


@pytest.mark.parametrize("name", ["server", "postgres", "ray-head", "ray-gpu", "tls"])
def test_every_service_is_closed(compose: dict[str, Any], name: str) -> None:
    service = compose["services"][name]

    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "healthcheck" in service
    assert not {"privileged", "network_mode", "pid", "ipc", "userns_mode"} & set(service)
    if name == "postgres":
        assert set(service["cap_add"]) <= {"CHOWN", "DAC_READ_SEARCH", "FOWNER", "SETGID", "SETUID"}
        assert "database:/var/lib/postgresql/data" in service["volumes"]
    elif name == "tls":
        assert service["cap_add"] == ["NET_BIND_SERVICE"]
    else:
        assert service["user"] == "1000:1000"
        assert "cap_add" not in service
        assert {mount.split(":")[0] for mount in service["tmpfs"]} == {"/tmp", "/home/coloop"}


def test_postgresql_and_ray_do_not_reach_each_other(compose: dict[str, Any]) -> None:
    services = compose["services"]

    assert services["postgres"]["networks"] == ["database"]
    assert compose["networks"]["database"] == {"internal": True}
    for name in ("ray-head", "ray-gpu"):
        assert services[name]["networks"] == ["cluster"]
    assert services["tls"]["networks"] == ["edge"]
    assert {name: one["ports"] for name, one in services.items() if "ports" in one} == {
        "server": ["127.0.0.1:8321:8321"],
        "tls": ["80:80", "443:443", "443:443/udp"],
    }


def test_the_script_makes_every_secret_once_and_for_its_owner(tmp_path: Path) -> None:
    script = ["sh", str(ROOT / "tools" / "compose_secrets.sh")]

    subprocess.run(script, cwd=tmp_path, check=True)
    made = {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()}
    subprocess.run(script, cwd=tmp_path, check=True)

    assert sorted(made) == sorted(SECRETS)
    assert (tmp_path / "secrets").stat().st_mode & 0o777 == 0o700
    assert made == {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()}
    assert len({*made.values()}) == len(SECRETS)
    assert all(len(made[name]) == 64 for name in SECRETS if name != "coloop_database_url")
    password = made["postgres_password"]
    assert made["coloop_database_url"] == f"postgresql://coloop:{password}@postgres/coloop"


def test_the_image_does_not_run_as_root() -> None:
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    users = [line.split()[1] for line in lines if line.startswith("USER ")]

    assert users[-1] == "1000:1000"
    assert not any(
        line.startswith(("RUN", "COPY")) for line in lines[lines.index("USER 1000:1000") :]
    )


def test_the_services_are_those_of_the_design(compose: dict[str, Any]) -> None:
    services = compose["services"]

    assert set(services) == {"server", "tls", "postgres", "ray-head", "ray-gpu"}
    profiles = {name: one["profiles"] for name, one in services.items() if "profiles" in one}
    assert profiles == {"ray-gpu": ["gpu"], "tls": ["tls"]}
    devices = services["ray-gpu"]["deploy"]["resources"]["reservations"]["devices"]
    assert devices[0]["capabilities"] == ["gpu"]


def test_ray_asks_for_its_token_everywhere(compose: dict[str, Any]) -> None:
    for name in ("server", "ray-head", "ray-gpu"):
        environment = compose["services"][name]["environment"]
        assert environment["RAY_AUTH_MODE"] == "token"
        assert environment["RAY_AUTH_TOKEN_PATH"] == "/run/secrets/ray_auth_token"


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
    named = set(re.findall(r"^\s+(COLOOP_\w+):", text, re.MULTILINE)) - {
        "COLOOP_TORCH_INDEX",
        "COLOOP_SECRETS_DIR",
        "COLOOP_DOMAIN",
    }

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
