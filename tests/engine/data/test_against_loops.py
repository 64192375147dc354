"""Every loop that is written down: its tasks can be drawn, its texts compile, its code loads."""

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from coloop.data.template import TemplateProgram
from coloop.sandbox.process import Sandbox
from coloop.spec.names import own_columns
from coloop.spec.nodes import DatasetNode, FilterNode, TemplateNode

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT.parent / "shared" / "language" / "examples"
LOOPS = sorted([*EXAMPLES.glob("*.yaml"), *(ROOT / "presets" / "loops").glob("*.yaml")])

pytestmark = pytest.mark.skipif(not LOOPS, reason="no loops are written down here")


def nodes_of(path: Path, kind: str) -> dict[str, dict[str, Any]]:
    document = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    return {name: node for name, node in document["nodes"].items() if node["kind"] == kind}


@pytest.mark.sample(13)
@pytest.mark.parametrize("path", LOOPS, ids=lambda path: path.stem)
def test_columns_of_a_task_are_named_like_no_node_of_the_loop(path: Path) -> None:
    document = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))

    for name, node in nodes_of(path, "dataset").items():
        source = DatasetNode.model_validate(node).source
        if source.type == "task":
            assert own_columns(source).isdisjoint(document["nodes"]), name


@pytest.mark.sample(41)
@pytest.mark.parametrize("path", LOOPS, ids=lambda path: path.stem)
def test_texts_of_templates_compile(path: Path) -> None:
    for name, node in nodes_of(path, "template").items():
        TemplateProgram.from_section(TemplateNode.model_validate(node), node=name)


@pytest.mark.sample(16)
@pytest.mark.parametrize("path", LOOPS, ids=lambda path: path.stem)
def test_code_of_rewards_filters_and_templates_loads(path: Path) -> None:
    codes: list[tuple[str, str]] = []
    for node in nodes_of(path, "reward").values():
        if node["source"].get("type") == "python" and "code" in node["source"]:
            codes.append((node["source"]["code"], "reward"))
    for node in nodes_of(path, "filter").values():
        rules = FilterNode.model_validate(node).keep
        codes.extend((rule.code, "keep") for rule in rules if rule.rule == "python")
    codes.extend((n["code"], "write") for n in nodes_of(path, "template").values() if "code" in n)

    for code, function in codes:
        with Sandbox(code, function=function, node=path.stem) as child:
            child.load()
