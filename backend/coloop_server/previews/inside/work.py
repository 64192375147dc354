"""One job from its bytes to its answer's."""

import traceback

from coloop.errors import ColoopError, SpecProblem
from coloop.spec.graph import LoopSpec
from coloop.spec.io import dump, parse
from coloop_server.previews.inside.overlap import overlap_of
from coloop_server.previews.inside.rollouts import rolled_out
from coloop_server.previews.inside.rows import page_of
from coloop_server.previews.inside.scores import scores_of
from coloop_server.previews.inside.tokens import tokens_of
from coloop_server.previews.schemas import (
    AskOverlap,
    AskRows,
    AskScores,
    AskTokens,
    DatasetPage,
    Done,
    Job,
    Overlap,
    RolledOutRows,
    Scores,
    TokenizedRows,
)


def do(given: bytes) -> bytes:
    """What came of a job; what the user can cause is told, and not a fault."""
    try:
        answer = answer_of(Job.model_validate_json(given))
        done = Done(answer=answer.model_dump(mode="json"))
    except MemoryError:
        done = Done(code="preview.memory", message="the preview took more memory than it may")
    except ColoopError as error:
        detail = {name: getattr(error, name) for name in ("node", "field") if hasattr(error, name)}
        done = Done(code=error.code, message=str(error), detail=detail)
    except Exception as error:
        traceback.print_exc()
        done = Done(code="preview.fault", message=f"{type(error).__name__}: {error}")
    return done.model_dump_json().encode()


def answer_of(job: Job) -> Scores | DatasetPage | TokenizedRows | Overlap:
    asked = job.asked
    spec = spec_of(asked.yaml)
    match asked:
        case AskScores(rows=RolledOutRows() as wanted):
            samples = rolled_out(job, spec, wanted, asked.learner)
            told = {"samples": samples, "sampled_by": dump(spec), "sampled_in": job.root}
            return scores_of(job.model_copy(update=told), spec)
        case AskScores():
            return scores_of(job, spec)
        case AskRows():
            return page_of(job, spec)
        case AskTokens():
            return tokens_of(job, spec)
        case AskOverlap():
            return overlap_of(job, spec)


def spec_of(text: str) -> LoopSpec:
    parsed = parse(text)
    if parsed.spec is None:
        raise SpecProblem("the loop cannot be read", parsed.diagnostics)
    return parsed.spec
