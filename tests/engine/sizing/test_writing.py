"""Times of writing against published throughput, where the table of measurements is at hand."""

import math
import re

import pytest
from tests.engine.measurements import Measurements

from coloop.errors import PresetNotFound
from coloop.plan.settings.architecture import (
    architecture_from_config,
    count_parameters,
    kv_bytes_per_token,
)
from coloop.plan.settings.cores import WritingLoad, writing_seconds
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


def _load(row, *, rows, most):
    """An engine that holds as many rows at once as its cache allows, `most` at the most."""
    arch = architecture_from_config(presets.architecture(_model(row)))
    count, gpu = count_parameters(arch), presets.gpu_facts(GPUS[row["gpu"]])
    width, tensor = WIDTHS[row["precision"]], int(row["n_gpus"])
    prompt, written = float(row["seq_len_or_isl"]), float(row["osl"])
    cache = 0.9 * gpu.usable_bytes - width * count.total / tensor
    fitting = cache / (kv_bytes_per_token(arch, 1, tensor) * width * (prompt + written / 2))
    return WritingLoad(
        arch=arch,
        count=count,
        width=width,
        cache_width=width,
        texts=TableSize(rows=rows, prompt=prompt, written=written, written_max=written),
        at_once=max(min(rows, most, fitting), 1.0),
        tensor_parallel=tensor,
        bandwidth=gpu.bandwidth,
        flops=gpu.bf16_flops * (2 if width == 1 else 1),
        link=gpu.link_bandwidth,
    )


def _error(row, **options):
    load = _load(row, **options)
    seconds, _ = writing_seconds(load)
    return math.log(load.texts.rows * load.texts.written / seconds / float(row["tok_s_total"]))


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
