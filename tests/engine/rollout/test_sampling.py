"""Draws: uniform numbers by counter, and tokens with the right frequencies."""

from itertools import product

import pytest
import torch
from tests.engine.numerics import assert_near
from tests.engine.rollout.tape import Counting
from torch import Tensor

from coloop.workers.rollout.sampling import KEEP_ALL, NO_SCRIPT, Settings, draw, uniforms

TERMS, LOGITS = 32, 4.0
"""Roundings of a draw from up to sixteen tokens, and their greatest log-prob."""

CHI_SQUARE_999 = {3: 16.27, 7: 24.32, 9: 27.88, 15: 37.70}
"""Values that a chi-square of so many degrees of freedom exceeds once in a thousand times."""


def chi_square(counts: torch.Tensor, p: torch.Tensor) -> float:
    expected = p * counts.sum()
    return float(((counts - expected) ** 2 / expected)[p > 0].sum())


def repeated(logits: torch.Tensor, rows: int) -> torch.Tensor:
    return logits.expand(rows, -1).clone()


def test_a_draw_depends_on_seed_and_counter_alone() -> None:
    together = uniforms([5, 6, 7], 10)

    assert torch.equal(uniforms([6], 10)[0], together[1])
    assert torch.equal(uniforms([6], 4)[0], together[1, :4])


def test_draws_may_begin_at_any_number() -> None:
    from_start = uniforms([5, 6, 7], 12)

    assert torch.equal(uniforms([6], 4, starts=[8])[0], from_start[1, 8:])
    assert torch.equal(
        uniforms([5, 7], 3, starts=[0, 2]), torch.stack([from_start[0, :3], from_start[2, 2:5]])
    )


def test_draws_are_the_split_mix_of_seed_and_counter() -> None:
    mask = (1 << 64) - 1

    def mix(z: int) -> int:
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return z ^ (z >> 31)

    golden = 0x9E3779B97F4A7C15
    for seed in (0, 1, 2**63 - 1, 2**63, 2**64 - 1):
        stream = mix((seed + golden) & mask)
        expected = [(mix((stream + t * golden) & mask) >> 40) / 2**24 for t in range(1, 6)]
        assert uniforms([seed], 5)[0].tolist() == expected


def test_draws_are_uniform_across_seeds_and_across_counters() -> None:
    for numbers in (uniforms(range(20_000), 1).flatten(), uniforms([3], 20_000).flatten()):
        counts = torch.histc(numbers, bins=16, min=0, max=1)

        assert chi_square(counts, torch.full((16,), 1 / 16)) < CHI_SQUARE_999[15]
        assert float(numbers.min()) >= 0.0
        assert float(numbers.max()) < 1.0


def test_neighbouring_seeds_and_counters_are_uncorrelated() -> None:
    grid = uniforms(range(2000), 20)
    down = torch.corrcoef(torch.stack([grid[:-1].flatten(), grid[1:].flatten()]))[0, 1]
    along = torch.corrcoef(torch.stack([grid[:, :-1].flatten(), grid[:, 1:].flatten()]))[0, 1]

    assert abs(float(down)) < 0.02
    assert abs(float(along)) < 0.02


@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_frequencies_match_the_softmax_at_the_temperature(temperature: float) -> None:
    rows = 20_000
    logits = torch.tensor([2.0, 1.0, 0.0, -1.0, 0.5, 1.5, -0.5, 0.2])
    settings = Settings(inverse_temperature=torch.full((rows,), 1 / temperature))

    tokens, log_probs = draw(repeated(logits, rows), uniforms(range(rows), 1)[:, 0], settings)

    p = torch.softmax(logits / temperature, -1)
    counts = torch.bincount(tokens, minlength=8).float()
    assert chi_square(counts, p) < CHI_SQUARE_999[7]
    assert_near(log_probs[:, 0], p.log()[tokens], terms=TERMS)
    assert log_probs.shape == (rows, 1)


def test_a_token_without_probability_is_never_drawn() -> None:
    logits = torch.tensor([-torch.inf, 0.0, -torch.inf, 0.0, -torch.inf])
    numbers = torch.cat([torch.tensor([0.0, 0.5, 1 - 2**-24]), uniforms(range(5000), 1)[:, 0]])

    tokens = draw(repeated(logits, len(numbers)), numbers, Settings())[0]

    assert set(tokens.tolist()) == {1, 3}
    assert tokens[:3].tolist() == [1, 3, 3]


@pytest.mark.parametrize("top_k", [1, 2, 3])
def test_top_k_draws_from_the_k_likeliest_renormalised(top_k: int) -> None:
    rows = 4000
    p = torch.tensor([0.1, 0.4, 0.2, 0.3])
    settings = Settings(top_k=torch.full((rows,), top_k))

    tokens, log_probs = draw(repeated(p.log(), rows), uniforms(range(rows), 1)[:, 0], settings)

    kept = {1: [1], 2: [1, 3], 3: [1, 2, 3]}[top_k]
    wanted = torch.zeros(4)
    wanted[kept] = p[kept] / p[kept].sum()
    counts = torch.bincount(tokens, minlength=4).float()
    assert set(tokens.tolist()) == set(kept)
    assert chi_square(counts, wanted) < CHI_SQUARE_999[3]
    assert_near(log_probs[:, 1], wanted.log()[tokens], terms=TERMS, scale=LOGITS)
    assert_near(log_probs[:, 0], p.log()[tokens], terms=TERMS, scale=LOGITS)


@pytest.mark.parametrize(
    ("top_p", "kept"),
    [
        (0.01, [1]),  # the likeliest token stays, however small the share
        (0.39, [1]),  # it holds the share by itself
        (0.41, [1, 3]),
        (0.7, [1, 3]),
        (0.75, [1, 2, 3]),
        (KEEP_ALL, [0, 1, 2, 3]),
    ],
)
def test_top_p_keeps_the_fewest_tokens_that_hold_the_share(top_p: float, kept: list[int]) -> None:
    rows = 4000
    p = torch.tensor([0.125, 0.4, 0.175, 0.3])
    settings = Settings(top_p=torch.full((rows,), top_p))

    tokens, log_probs = draw(repeated(p.log(), rows), uniforms(range(rows), 1)[:, 0], settings)

    wanted = torch.zeros(4)
    wanted[kept] = p[kept] / p[kept].sum()
    assert set(tokens.tolist()) == set(kept)
    assert_near(log_probs[:, 1], wanted.log()[tokens], terms=TERMS, scale=LOGITS)


def test_top_p_holds_its_share_of_what_top_k_left() -> None:
    p = torch.tensor([[0.4, 0.3, 0.2, 0.1]])
    settings = Settings(top_k=torch.tensor([2]), top_p=torch.tensor([0.55]))

    # After top-k 2 the shares are 4/7 = 0.571 and 3/7: the first alone holds 0.55.
    tokens, log_probs = draw(p.log(), torch.tensor([0.99]), settings)

    assert tokens.tolist() == [0]
    assert log_probs[:, 1].tolist() == [0.0]


def test_rows_with_different_settings_do_not_touch_each_other() -> None:
    logits = torch.tensor([0.1, 0.4, 0.2, 0.3]).log()
    settings = Settings(
        inverse_temperature=torch.tensor([1.0, 2.0, 1.0, 1.0]),
        greedy=torch.tensor([True, False, False, False]),
        top_k=torch.tensor([4, 4, 1, 4]),
        top_p=torch.tensor([KEEP_ALL, KEEP_ALL, KEEP_ALL, 0.5]),
    )

    numbers = torch.tensor([0.999, 0.999, 0.999, 0.999])
    tokens, log_probs = draw(repeated(logits, 4), numbers, settings)

    assert tokens.tolist()[0] == 1
    assert tokens.tolist()[2] == 1
    assert tokens.tolist()[3] == 3
    # The second row's shares are squared: 0.01, 0.16, 0.04, 0.09 of 0.30.
    assert tokens.tolist()[1] == 3
    assert float(log_probs[1, 0]) == pytest.approx(float(torch.tensor(0.09 / 0.30).log()))
    assert float(log_probs[0, 1]) == pytest.approx(float(torch.tensor(0.4).log()))


def test_greedy_takes_the_first_of_equal_logits() -> None:
    settings = Settings(all_greedy=True, greedy=torch.tensor([True]))

    tokens, _ = draw(torch.tensor([[0.0, 3.0, 3.0]]), torch.tensor([0.9]), settings)

    assert tokens.tolist() == [1]


def test_wrong_shapes_are_told_with_both_shapes() -> None:
    with pytest.raises(ValueError, match=r"\(B, V\) and uniform \(B,\) expected"):
        draw(torch.zeros(3, 4), torch.zeros(2), Settings())


def drawn_plainly(
    logits: Tensor, uniform: Tensor, settings: Settings, scripted: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Tokens and their log-probs before and after the cut, with a table for each step of it."""
    rows, size = logits.shape
    everything = torch.full((rows,), size)
    scale, top_p, top_k = settings.inverse_temperature, settings.top_p, settings.top_k
    wide = logits.float() * (torch.ones(rows) if scale is None else scale)[:, None]
    log_p = torch.log_softmax(wide, -1)
    p = log_p.exp()
    falling, order = p.sort(dim=-1, descending=True, stable=True)
    is_cut = torch.arange(size)[None, :] >= (everything if top_k is None else top_k)[:, None]
    left = falling.masked_fill(is_cut, 0.0)
    before = (left.cumsum(-1) - left) / left.sum(-1, keepdim=True)
    is_cut |= before >= (everything if top_p is None else top_p)[:, None]
    cut = p.masked_fill(torch.empty_like(is_cut).scatter_(1, order, is_cut), 0.0)
    running = cut.cumsum(-1)
    tokens = torch.searchsorted(running, (running[:, -1] * uniform)[:, None], right=True)
    tokens = tokens.squeeze(1).clamp_(max=size - 1)
    at = torch.arange(rows)
    after = (cut[at, tokens] / cut.sum(-1)).log()
    greedy = torch.zeros(rows, dtype=torch.bool) if settings.greedy is None else settings.greedy
    is_given = greedy
    tokens = torch.where(greedy, logits.argmax(-1), tokens)
    if scripted is not None:
        is_given = is_given | (scripted != NO_SCRIPT)
        tokens = torch.where(scripted != NO_SCRIPT, scripted, tokens)
    return tokens, log_p[at, tokens], torch.where(is_given, log_p[at, tokens], after)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("size", [7, 3001, 4096])
def test_what_is_left_out_changes_no_bit(size: int, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(size)
    rows = 8

    def numbers() -> Tensor:
        return torch.rand(rows, generator=generator)

    for tempers, cuts_p, cuts_k, takes, says in product((False, True), repeat=5):
        logits = (torch.randn(rows, size, generator=generator) * 3).to(dtype)
        logits[:, ::5] = -torch.inf
        logits[:, 1::5] = logits[:, 1::5].round()  # many alike
        settings = Settings(
            inverse_temperature=0.2 + 3 * numbers() if tempers else None,
            greedy=numbers() < 0.3 if takes else None,
            top_p=torch.where(numbers() < 0.3, KEEP_ALL, 0.1 + 0.8 * numbers()) if cuts_p else None,
            top_k=torch.randint(1, size + 2, (rows,), generator=generator) if cuts_k else None,
        )
        scripted = torch.where(numbers() < 0.5, NO_SCRIPT, 3) if says else None
        uniform = numbers()
        tokens, before, after = drawn_plainly(logits, uniform, settings, scripted)

        drawn, log_probs = draw(logits.clone(), uniform, settings, scripted)

        assert torch.equal(drawn, tokens)
        assert torch.equal(log_probs[:, 0], before)
        assert log_probs.shape[1] == (2 if settings.cuts else 1)
        if settings.cuts:
            assert torch.equal(log_probs[:, 1], after)


@pytest.mark.parametrize(
    ("asked", "dtype", "passes"),
    [
        ({}, torch.float32, 6),
        ({}, torch.bfloat16, 7.5),
        ({"inverse_temperature": torch.full((8,), 0.7)}, torch.float32, 8),
        ({"inverse_temperature": torch.full((8,), 0.7)}, torch.bfloat16, 7.5),
        ({"all_greedy": True, "greedy": torch.ones(8, dtype=torch.bool)}, torch.float32, 3),
    ],
)
def test_a_draw_reads_and_writes_the_vocabulary_no_oftener_than_it_must(
    asked: dict[str, Tensor], dtype: torch.dtype, passes: float
) -> None:
    logits = torch.randn(8, 4096).to(dtype)
    counting = Counting()

    with torch.inference_mode(), counting:
        draw(logits, torch.rand(8), Settings(**asked))

    assert counting.moved / (logits.numel() * 4) == pytest.approx(passes, abs=0.02)
