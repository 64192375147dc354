"""Trying rewards over HTTP."""

import asyncio
from functools import partial

from fastapi import APIRouter, Request

from coloop_server.rewards import service
from coloop_server.rewards.schemas import TriedReward, TryReward
from coloop_server.rewards.slots import PreviewSlots

router = APIRouter(prefix="/rewards", tags=["rewards"])


@router.post("/preview", operation_id="previewReward")
async def preview_reward(body: TryReward, request: Request) -> TriedReward:
    """Score sample rows before any training. What is wrong with it is part of the answer; 429 where
    too many are tried at once."""
    state = request.app.state
    slots: PreviewSlots = state.previews
    work = partial(service.try_reward, body, state.ending.is_set)
    return await asyncio.wrap_future(slots.submit(work))
