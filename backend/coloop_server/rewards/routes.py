"""Trying rewards over HTTP."""

from fastapi import APIRouter, Request

from coloop_server.rewards import service
from coloop_server.rewards.schemas import TriedReward, TryReward

router = APIRouter(prefix="/rewards", tags=["rewards"])


@router.post("/preview", operation_id="previewReward")
def preview_reward(body: TryReward, request: Request) -> TriedReward:
    """Score sample rows before any training. What is wrong with it is part of the answer."""
    return service.try_reward(body, request.app.state.ending.is_set)
