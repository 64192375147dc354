"""Sums, counts and maxima over the micro-batches of an update."""

import torch

from coloop.workers.training.meter import Meter


def test_a_mean_is_over_everything_and_a_maximum_the_greatest_in_any_order() -> None:
    meter = Meter()

    for total, count, greatest in ((6.0, 2, 1.5), (1.0, 1, 3.0), (2.0, 3, -4.0)):
        meter.add("actor", "loss", total, count)
        meter.add_maximum("actor", "ratio/max", torch.tensor(greatest))
    meter.add("critic", "loss", 5.0, 0)

    assert meter.read() == {"actor": {"loss": 1.5, "ratio/max": 3.0}, "critic": {"loss": 0.0}}
    assert meter.mean("actor", "loss") == 1.5
    assert meter.mean("actor", "kl") is None
