"""What a start does before its first answer does not grow with what there is. Counts, no clocks."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from alembic.script import ScriptDirectory
from tests.backend.signed_in import signed_in
from tests.backend.test_long_runs import line, statements, write_run

from coloop_server.database.connect import MIGRATIONS, known_revisions
from coloop_server.settings import Settings

FEW, MANY = 5, 60
heard: list[list[str]] = []
"""Who listens for files that are opened just now; a hook of Python's stays for ever."""


def hear(event: str, arguments: tuple[Any, ...]) -> None:
    if heard and event == "open" and isinstance(arguments[0], str | bytes | Path):
        path = arguments[0]
        heard[-1].append(path.decode() if isinstance(path, bytes) else str(path))


@pytest.fixture(scope="module", autouse=True)
def _hook() -> None:
    sys.addaudithook(hear)


@contextmanager
def opened() -> Iterator[list[str]]:
    """Files that this process opens meanwhile."""
    heard.append([])
    try:
        yield heard[-1]
    finally:
        heard.pop()


def write_runs(settings: Settings, loop: str, count: int) -> None:
    for number in range(count):
        told = [line(step, "metrics", step=step, metrics={"loss": 1.0}) for step in range(1, 4)]
        told.append(line(4, "run.state", state="finished"))
        write_run(settings.runs_dir / f"run-{number:03}", loop, told)


@pytest.mark.slow
@pytest.mark.parametrize("count", [FEW, MANY])
def test_a_start_opens_no_file_of_the_runs_that_it_knows(
    settings: Settings, loop: str, count: int
) -> None:
    write_runs(settings, loop, count)
    with signed_in(settings) as client:
        client.app.state.supervisor.scanner.wait_for_look(60)  # type: ignore[attr-defined]

    with opened() as files, statements() as asked, signed_in(settings) as client:
        page = client.get("/api/runs?limit=50")
        client.app.state.supervisor.scanner.wait_for_look(60)  # type: ignore[attr-defined]

    assert page.headers["x-total-count"] == str(count)
    kept = (str(settings.runs_dir), str(settings.data_dir / "series"))
    assert [path for path in files if path.startswith(kept)] == []
    assert any("folder-id" in path for path in files)
    assert len(asked) < 20


@pytest.mark.slow
def test_a_start_without_a_migration_loads_nothing_that_runs_some(settings: Settings) -> None:
    code = (
        "import sys\n"
        "from coloop_server.database.connect import migrate, open_engine\n"
        "import coloop_server.cli\n"
        f"migrate(open_engine('sqlite:///{settings.data_dir}/coloop.db'))\n"
        "print('alembic' in sys.modules, 'mako' in sys.modules)\n"
    )
    settings.data_dir.mkdir(parents=True)

    assert told_by(code) == "True True"
    assert told_by(code) == "False False"


def test_the_newest_migration_is_the_one_that_the_files_lead_to() -> None:
    migrations = ScriptDirectory(str(MIGRATIONS))

    assert known_revisions() == {script.revision for script in migrations.walk_revisions()}
    assert max(known_revisions()) == migrations.get_current_head()


@pytest.mark.slow
def test_each_route_is_made_once_and_no_model_of_errors_with_it() -> None:
    code = """
import json
from fastapi import routing
from fastapi import utils
made, fields = [], []
real, field = routing.APIRoute.__init__, routing.create_model_field

def counted(self, path, *rest, **more):
    made.append(path)
    real(self, path, *rest, **more)

def noted(*rest, **more):
    fields.append(more.get("type_"))
    return field(*rest, **more)

routing.APIRoute.__init__, routing.create_model_field = counted, noted
from coloop_server.app import ROUTERS
from coloop_server.errors import ErrorBody
routes = sum(isinstance(one, routing.APIRoute) for part in ROUTERS for one in part.routes)
print(json.dumps([len(made), routes, len(fields), fields.count(ErrorBody)]))
"""
    made, routes, fields, errors = json.loads(told_by(code))

    assert made == routes > 50
    assert 0 < fields <= routes
    assert errors == 0


def told_by(code: str) -> str:
    """What a process of its own prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()
