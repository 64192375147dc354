"""Prints what TRL's own functions say of the logits of `tests/engine/algos/test_distillation.py`;
runs in the environment of `make bench-venv`.

    python -m tests.bench.distillation_numbers

Of `DistillationTrainer` it is the loss and its gradient towards the student's logits, by
`ChunkedDivergenceFunction` with heads that hand the logits on; of GKD and SDPO the loss.
"""

import json

import torch
from torch import Tensor
from trl.experimental.gkd.gkd_trainer import GKDTrainer
from trl.experimental.sdpo.loss_utils import compute_topk_self_distillation_loss
from trl.kernels.chunked_divergence import ChunkedDivergenceFunction

STUDENT = torch.tensor([[1.0, -0.5, 0.25, 2.0, 0.0], [0.3, 0.7, -1.2, 0.1, 0.9]])
TEACHER = torch.tensor([[0.5, 0.5, -1.0, 1.5, 0.2], [-0.4, 1.6, 0.8, 0.0, -2.0]])
KINDS = {"reverse": 1.0, "forward": 0.0, "jsd": 0.3}
TEMPERATURES = (1.0, 2.0)
"""TRL counts its `beta` from forward to reverse."""


def main() -> None:
    found = {}
    for kind, beta in KINDS.items():
        for temperature in TEMPERATURES:
            name = f"{kind} {temperature}"
            losses, slope = of_trainer(beta, temperature)
            gkd = GKDTrainer.generalized_jsd_loss(
                STUDENT[None], TEACHER[None], beta=beta, temperature=temperature, reduction="sum"
            )
            found[name] = {"losses": losses, "slope": slope, "gkd": round(float(gkd), 6)}
    for tail in (True, False):
        for kind, alpha in KINDS.items():
            top = compute_topk_self_distillation_loss(
                STUDENT,
                TEACHER,
                distillation_topk=3,
                distillation_alpha=alpha,
                distillation_add_tail=tail,
            )
            found[f"sdpo {kind} {'bucket' if tail else 'renormalize'}"] = rounded(top)
    print(json.dumps(found, indent=1))


def of_trainer(beta: float, temperature: float) -> tuple[list[float], list[list[float]]]:
    student, heads = STUDENT.clone().requires_grad_(), torch.eye(STUDENT.shape[1])
    losses, _ = ChunkedDivergenceFunction.apply(
        student, heads, None, TEACHER, heads, None, beta, temperature
    )
    losses.sum().backward()
    assert student.grad is not None
    return rounded(losses), [rounded(row) for row in student.grad]


def rounded(numbers: Tensor) -> list[float]:
    return [round(float(number), 6) for number in numbers.detach()]


if __name__ == "__main__":
    main()
