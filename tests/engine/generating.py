"""All requests of a test written by one engine."""

from collections.abc import Sequence

from coloop.workers.rollout import Generation, RolloutEngine
from coloop.workers.rollout.generate import Batch, Progress, ShouldStop


def generate(
    engine: RolloutEngine,
    requests: Sequence[Generation],
    progress: Progress | None = None,
    should_stop: ShouldStop | None = None,
) -> list[Generation]:
    """One generation for each request, in the order of the requests: submit all, collect all.

    The engine has nothing else to write meanwhile. Where one request is refused, or the call is
    stopped, none is left behind.
    """
    batch = Batch(engine)
    try:
        for request in requests:
            batch.submit(request)
    except BaseException:
        batch.give_up()
        raise
    done = dict(batch.write(progress, should_stop))
    return [done[number] for number in range(len(requests))]


def versions_of(row: Generation) -> list[int]:
    """Version of the weights that wrote each token, L."""
    versions = [0] * len(row.token_ids)
    for token, version in row.versions:
        versions[token:] = [version] * (len(versions) - token)
    return versions
