"""`coloop estimate --explain`: the formulas behind the numbers, as text and in the JSON."""

import pytest

from coloop.cli.formulas import amount


def test_the_text_has_formulas_values_and_sources(coloop):
    found = coloop("estimate", "grpo-qwen2.5-7b-8xH100", "--explain")

    assert found.code == 0
    told = found.out
    assert "main, optimizer of actor" in told
    formula = "states a parameter × bytes of a trained parameter × trained parameters"
    assert f"7.1 GiB = {formula} ÷ GPUs of main" in told
    assert "trained parameters 7.62B (Qwen/Qwen2.5-7B-Instruct, a model of type qwen2)" in told
    assert "from: ZeRO (arXiv 1910.02054)" in told


def test_the_json_has_all_of_them(coloop):
    price = "hardware={preset: 8xH100, price_per_gpu_hour: 2}"
    found = coloop("estimate", "grpo-qwen2.5-7b-8xH100", "--set", price, "--explain", "--json").json
    terms = found["explain"]["terms"]

    seconds = {stage["stage"]: stage["seconds"] for stage in found["stages"]}
    told = {one["stage"]: one["term"]["value"] for one in terms["stages"] if one["phase"] is None}
    assert told == seconds
    assert terms["gpu_hours"]["value"] == pytest.approx(found["run"]["gpu_hours"])
    assert terms["cost"]["value"] == pytest.approx(found["run"]["cost"])
    assert terms["cost"]["lines"][0]["formula"] == "GPU-hours × price of a GPU for an hour"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (4.0, "B", "4 B"),
        (1.5 * 2**30, "B", "1.5 GiB"),
        (3.4e-5, "s", "34 µs"),
        (12.0, "s", "12.0 s"),
        (989e12, "FLOP/s", "989 TFLOP/s"),
        (3.35e12, "B/s", "3,350 GB/s"),
        (77.876, "money", "77.88"),
        (7_615_616_512.0, "", "7.62B"),
        (15_240.0, "tokens", "15,240 tokens"),
        (0.25, "", "0.25"),
    ],
)
def test_amounts_have_their_units(value, unit, text):
    assert amount(value, unit) == text
