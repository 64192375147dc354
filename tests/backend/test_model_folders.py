"""What a folder that a loop names holds is held against the roots as its path is: links in it lead
to nothing outside."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.backend.servers import settings_in
from tests.backend.signed_in import signed_in

from coloop.models import build_model, save_hf
from coloop.spec.io import parse
from coloop.spec.model import ScratchModel
from coloop_server.errors import NotAllowed
from coloop_server.language import check_edit
from coloop_server.settings import Settings

pytestmark = pytest.mark.attack

SECRET = "nobody else may read this"
TEMPLATE = f"{SECRET}: {{{{ messages[0].content }}}}"
LOOP = """\
coloop: 1
name: reads-a-folder
nodes:
  talks:
    kind: dataset
    source: {type: inline, rows: [{prompt: [{role: user, content: "1+1="}], answer: "2"}]}
    rows_per_step: 1
  actor:
    kind: actor
    model: {type: pretrained, path: models/tiny}
    rollout: {completions_per_prompt: 2, max_new_tokens: 4}
    algorithm: {rewards: {name: grpo}}
  exact: {kind: reward, source: {type: builtin, name: exact_match}}
edges:
  - talks.rows -> actor.prompts
  - actor.rollouts -> exact.rollouts
  - exact.scores -> actor.rewards
schedule: {steps: 1}
hardware: {preset: cpu}
"""
DOCUMENTS = LOOP.replace(
    '{type: inline, rows: [{prompt: [{role: user, content: "1+1="}], answer: "2"}]}',
    "{type: file, path: talks, format: text}",
).replace("{type: pretrained, path: models/tiny}", "{type: scratch, architecture: tiny-qwen3}")


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    settings = settings_in(tmp_path_factory.mktemp("folders"))
    settings.allowed_roots[0].mkdir()
    return settings


@pytest.fixture(scope="module")
def client(settings: Settings) -> Iterator[TestClient]:
    """One for all of them: what previews stem from loads the engine once."""
    with signed_in(settings) as client:
        yield client


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder without a link, whose chat template is the secret."""
    folder = tmp_path_factory.mktemp("private") / "tiny"
    loaded = build_model(
        ScratchModel(type="scratch", architecture="tiny-qwen3"), seed=0, root=Path()
    )
    save_hf(folder, loaded.model, loaded.tokenizer)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return folder


@pytest.fixture
def root(settings: Settings) -> Iterator[Path]:
    """The first root, empty."""
    root = settings.allowed_roots[0]
    yield root
    for path in root.iterdir():
        shutil.rmtree(path)


@pytest.fixture
def model(root: Path, tiny: Path) -> Path:
    """The model folder that the loop names, without a template: sound until a test adds a link."""
    folder = root / "models" / "tiny"
    shutil.copytree(tiny, folder)
    (folder / "chat_template.jinja").unlink()
    return folder


def preview(client: TestClient, loop: str = LOOP, what: str = "tokens") -> Any:
    return client.post(f"/api/previews/{what}", json={"yaml": loop, "node": "talks", "count": 1})


def link_template(model: Path, tiny: Path) -> str:
    (model / "chat_template.jinja").symlink_to(tiny / "chat_template.jinja")
    return "chat_template.jinja"


def link_further_template(model: Path, tiny: Path) -> str:
    (model / "additional_chat_templates").mkdir()
    link = model / "additional_chat_templates" / "default.jinja"
    link.symlink_to(tiny / "chat_template.jinja")
    return "additional_chat_templates/default.jinja"


def link_folder(model: Path, tiny: Path) -> str:
    (tiny.parent / "templates").mkdir(exist_ok=True)
    (tiny.parent / "templates" / "default.jinja").write_text(TEMPLATE)
    (model / "additional_chat_templates").symlink_to(tiny.parent / "templates")
    return "additional_chat_templates"


def link_by_a_folder_of_the_root(model: Path, tiny: Path) -> str:
    """Both folders lie in the root; the link to the second is one step of two."""
    between = model.parent / "templates"
    between.mkdir()
    (between / "default.jinja").symlink_to(tiny / "chat_template.jinja")
    (model / "additional_chat_templates").symlink_to(between)
    return "additional_chat_templates/default.jinja"


def link_tokenizer(model: Path, tiny: Path) -> str:
    (model / "tokenizer.json").unlink()
    (model / "tokenizer.json").symlink_to(tiny / "tokenizer.json")
    return "tokenizer.json"


def link_tokenizer_config(model: Path, tiny: Path) -> str:
    (model / "tokenizer_config.json").unlink()
    (model / "tokenizer_config.json").symlink_to(tiny / "tokenizer_config.json")
    return "tokenizer_config.json"


def link_to_the_servers_token(model: Path, tiny: Path) -> str:
    """Below the folder of the tests' server, which is no root."""
    (model / "chat_template.jinja").symlink_to(model.parents[2] / "data" / "secret")
    return "chat_template.jinja"


def link_to_itself(model: Path, tiny: Path) -> str:
    (model / "round").symlink_to("round")
    return "round"


LINKS = (
    *(link_template, link_further_template, link_folder, link_by_a_folder_of_the_root),
    *(link_tokenizer, link_tokenizer_config, link_to_the_servers_token, link_to_itself),
)


@pytest.mark.slow
def test_the_template_of_a_folder_without_links_is_read(
    client: TestClient, model: Path, tiny: Path
) -> None:
    """The control: what the links lead to would be answered."""
    shutil.copyfile(tiny / "chat_template.jinja", model / "chat_template.jinja")

    answer = preview(client)

    assert answer.status_code == 200, answer.text
    [text] = answer.json()["texts"]
    assert "".join(token["text"] for token in text["tokens"]).startswith(SECRET[:10])


@pytest.mark.parametrize("link", LINKS)
def test_a_link_that_leads_outside_is_refused_by_name(
    client: TestClient,
    settings: Settings,
    model: Path,
    tiny: Path,
    link: Callable[[Path, Path], str],
) -> None:
    entry = link(model, tiny)

    previewed = preview(client)
    started = client.post("/api/runs", json={"yaml": LOOP})
    checked = client.post("/api/check", json={"yaml": LOOP}).json()["report"]

    for answer in (previewed, started):
        assert answer.status_code == 403, answer.text
        assert answer.json()["code"] == "path.outside"
        assert f"'models/tiny' holds {entry}, which leads outside" in answer.json()["message"]
        assert SECRET not in answer.text
    [finding] = [one for one in checked["diagnostics"] if one["severity"] == "error"]
    assert (finding["code"], finding["node"]) == ("data.outside", "actor")
    assert finding["field"] == "model.path"
    assert entry in finding["message"]
    assert SECRET not in str(checked)
    assert client.get("/api/runs").json() == []
    assert not [*settings.runs_dir.glob("*/checkpoints")]


def test_a_link_in_what_a_phase_will_set_is_refused(
    client: TestClient, model: Path, tiny: Path
) -> None:
    (model / "rows.txt").symlink_to(tiny / "config.json")
    document = parse(DOCUMENTS).document
    assert document is not None
    document["nodes"]["talks"]["source"]["path"] = "models"
    phase = {"name": "p", "steps": 1, "set": {"nodes.talks.source.path": "models/tiny"}}

    report = client.post("/api/check", json={"spec": {**document, "schedule": {"phases": [phase]}}})

    assert "data.outside" in [one["code"] for one in report.json()["report"]["diagnostics"]]


def test_an_edit_of_a_run_names_no_folder_with_such_a_link(
    settings: Settings, model: Path, tiny: Path
) -> None:
    (model / "rows.txt").symlink_to(tiny / "config.json")
    changes = {"nodes.talks.source.path": "models/tiny"}

    with pytest.raises(NotAllowed, match=r"holds rows\.txt, which leads outside"):
        check_edit(DOCUMENTS, changes, settings)


def test_a_cache_of_the_hub_in_a_root_is_read(client: TestClient, root: Path, tiny: Path) -> None:
    """Its files are links to blobs beside them."""
    repository = root / "hub" / "models--some--tiny"
    snapshot = repository / "snapshots" / "0123"
    snapshot.mkdir(parents=True)
    (repository / "blobs").mkdir()
    for number, file in enumerate(sorted(tiny.iterdir())):
        shutil.copyfile(file, repository / "blobs" / str(number))
        (snapshot / file.name).symlink_to(f"../../blobs/{number}")
    loop = LOOP.replace("models/tiny", str(snapshot.relative_to(root)))

    previewed = preview(client, loop)
    checked = client.post("/api/check", json={"yaml": loop}).json()["report"]

    assert previewed.status_code == 200, previewed.text
    assert checked["ok"], checked
    (snapshot / "chat_template.jinja").unlink()
    (snapshot / "chat_template.jinja").symlink_to(tiny / "chat_template.jinja")
    assert preview(client, loop).status_code == 403


def test_a_folder_of_documents_holds_no_such_link(
    client: TestClient, root: Path, tiny: Path
) -> None:
    (root / "talks").mkdir()
    (root / "talks" / "plain.txt").write_text("1+1=")
    loop = DOCUMENTS
    assert preview(client, loop, "rows").status_code == 200

    (root / "talks" / "link.txt").symlink_to(tiny / "chat_template.jinja")
    answers = [preview(client, loop, "rows"), client.post("/api/runs", json={"yaml": loop})]

    assert [answer.status_code for answer in answers] == [403, 403]
    assert not [answer for answer in answers if SECRET in answer.text]


def test_the_servers_own_data_is_in_no_folder_that_a_loop_names(
    client: TestClient, settings: Settings, root: Path, model: Path
) -> None:
    """Also where the server's folder lies below a root, without a link."""
    above = settings.model_copy(update={"allowed_roots": (settings.data_dir.parent,)})
    spec = parse(DOCUMENTS.replace("path: talks", "path: .")).spec
    assert spec is not None

    [(field, refusal)] = above.roots.outside(spec)

    assert field == "nodes.talks.source.path"
    assert "'.' holds data, which leads outside" in str(refusal)


def test_a_folder_is_looked_through_once_and_not_for_ever(
    client: TestClient, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (model / "again").symlink_to(".")
    (model / "above").symlink_to("..")
    assert preview(client).status_code == 200

    monkeypatch.setattr("coloop_server.paths.MOST_ENTRIES", 3)
    answer = preview(client)

    assert answer.status_code == 403
    assert "more than 3 entries" in answer.json()["message"]


def test_a_relative_path_is_held_against_every_root_in_which_it_is_there(
    client: TestClient, settings: Settings, root: Path, tiny: Path
) -> None:
    """A loop is read from the root that has most of its files, which may be another."""
    settings.runs_dir.mkdir(exist_ok=True)
    link = settings.runs_dir / "rows.jsonl"
    (tiny.parent / "rows.jsonl").write_text(json.dumps({"prompt": SECRET, "answer": "2"}))
    link.symlink_to(tiny.parent / "rows.jsonl")
    loop = DOCUMENTS.replace("path: talks, format: text", "path: rows.jsonl")

    answer = preview(client, loop, "rows")
    link.unlink()

    assert answer.status_code == 403, answer.text
    assert SECRET not in answer.text


def test_a_folder_whose_name_reads_like_an_address_is_one(
    client: TestClient, root: Path, tiny: Path
) -> None:
    for scheme in ("file", "s3"):
        (root / f"{scheme}:").mkdir()
        (root / f"{scheme}:" / "tiny").symlink_to(tiny)
        answer = preview(client, LOOP.replace("models/tiny", f"{scheme}://tiny"))

        assert answer.status_code == 403, answer.text
        assert SECRET not in answer.text


def test_where_a_run_puts_its_checkpoints_may_hold_anything(
    client: TestClient, root: Path, model: Path, tiny: Path
) -> None:
    """It is written to."""
    (root / "kept").mkdir()
    (root / "kept" / "link").symlink_to(tiny)

    report = client.post("/api/check", json={"yaml": f"{LOOP}run: {{storage: kept}}\n"}).json()

    assert report["report"]["ok"], report
