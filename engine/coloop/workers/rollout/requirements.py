"""What the texts of an engine want together, from the moment at which it had none: the room they
need, and which ways of drawing are asked for at all."""

from __future__ import annotations

from dataclasses import dataclass

from coloop.workers.rollout.protocol import GenerationRequest

SLACK = 8
"""Most steps for which a row may run on behind its end, before it is taken out."""


@dataclass(slots=True)
class Requirements:
    """Grows with each request."""

    length: int = 0
    """Tokens of the longest text, what follows its end included."""
    width: int = 0
    """Tokens of the longest completion, what follows its end included."""
    tempers: bool = False
    """Whether some row is drawn at another temperature than 1."""
    draws: bool = False
    """Whether some row is not greedy."""
    is_greedy: bool = False
    """Whether some row is."""
    top_p: bool = False
    top_k: bool = False
    stops: bool = False
    scripts: bool = False

    def include(self, request: GenerationRequest) -> None:
        new = request.max_new_tokens + SLACK
        self.width = max(self.width, new)
        self.length = max(self.length, len(request.prompt_ids) + new)
        if takes_likeliest(request):
            self.is_greedy = True
        else:
            self.draws = True
        if request.temperature not in (0, 1):
            self.tempers = True
        if request.top_p < 1:
            self.top_p = True
        if request.top_k is not None:
            self.top_k = True
        if request.stop:
            self.stops = True
        if request.script:
            self.scripts = True

    @property
    def cuts(self) -> bool:
        """Whether some row's distribution is cut."""
        return self.draws and (self.top_p or self.top_k)


def takes_likeliest(request: GenerationRequest) -> bool:
    """Whether its tokens are not drawn but chosen."""
    return request.greedy or request.temperature == 0
