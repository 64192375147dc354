"""Times of writing against published throughput, where the table of measurements is at hand."""

import dataclasses
import math
import re

import pytest
from tests.engine.estimate.conftest import engine_of
from tests.engine.measurements import Measurements

from coloop.errors import PresetNotFound
from coloop.plan.settings.architecture import (
    architecture_from_config,
    count_parameters,
    kv_bytes_per_token,
)
from coloop.plan.settings.serving import writing_seconds
from coloop.spec import presets
from coloop.spec.table_sizes import TableSize

GIB = 2**30
TABLE = Measurements("throughput")
GPUS = {"H100-80GB": "H100-80GB", "H200": "H200-141GB", "A100-80GB": "A100-80GB"}
WIDTHS = {"bf16": 2.0, "fp8": 1.0}

pytestmark = TABLE.wanted


def _model(row):
    name = re.sub(r"llama-3\.3", "llama-3.1", row["model"].lower().removesuffix("-instruct"))
    try:
        return presets.model(name).name
    except PresetNotFound:
        return None


def _rows(task):
    return [
        row
        for row in TABLE.rows
        if row["task"] == task and _model(row) and row["gpu"] in GPUS and row["precision"] in WIDTHS
    ]


def _error(row, *, rows, most):
    """Of an engine that holds as many rows at once as its cache allows, `most` at the most."""
    arch, facts = architecture_from_config(presets.architecture(_model(row))), GPUS[row["gpu"]]
    count, gpu = count_parameters(arch), presets.gpu_facts(facts)
    width, tensor = WIDTHS[row["precision"]], int(row["n_gpus"])
    prompt, written = float(row["seq_len_or_isl"]), float(row["osl"])
    cache = 0.9 * gpu.usable_bytes - width * count.total / tensor
    fitting = cache / (kv_bytes_per_token(arch, 1, tensor) * width * (prompt + written / 2))
    engine = engine_of(arch, tensor_parallel=tensor, weight_bytes=width, compute=width)
    seconds, _ = writing_seconds(
        engine,
        dataclasses.replace(gpu, bf16_flops=gpu.bf16_flops * (2 if width == 1 else 1)),
        TableSize(rows=rows, prompt=prompt, written=written, written_max=written),
        max(min(rows, most, fitting), 1.0),
    )
    return math.log(rows * written / seconds / float(row["tok_s_total"]))


SATURATED = _rows("gen_max_throughput")
ALONE = [row for row in _rows("decode_b1") if "vLLM" in row["strategy"]]


def test_saturated_writing_is_mostly_within_a_third():
    errors = [abs(_error(row, rows=20_000.0, most=2048)) for row in SATURATED]

    assert len(errors) >= 30
    assert sorted(errors)[len(errors) // 2] < math.log(1.3)
    assert max(errors) < math.log(2.5)


@pytest.mark.parametrize("row", ALONE, ids=[row["id"] for row in ALONE])
def test_a_row_alone_is_written_at_the_pace_of_the_memory(row):
    assert abs(_error(row, rows=1.0, most=1)) < math.log(1.3)
