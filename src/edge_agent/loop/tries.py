"""What follows an attempt of a model call that failed or was not made: another one, of which model, and when."""

from collections.abc import Awaitable, Callable

from edge_agent.core import keys
from edge_agent.core.errors import EdgeAgentError
from edge_agent.core.events import ModelFailed, ModelRefused, Stage, Timer
from edge_agent.core.signals import Suspend, Wait
from edge_agent.core.usage import Usage
from edge_agent.loop.walk import Walk

MOST_LOST = 9  # attempts of one call that may be lost to restarts
Shorter = Callable[[int], Awaitable[bool]]


class ModelGaveUp(EdgeAgentError):
    """No retry and no fallback is left."""

    def __init__(self, failure: ModelFailed) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Tries:
    """Of one call, under `key`. Attempts of earlier lives do not count.

    shorter: makes a request shorter that was too long, given its tokens; False where that cannot be done."""

    def __init__(self, walk: Walk, key: str, models: int, shorter: Shorter | None) -> None:
        self.walk, self.key, self.models, self._shorter = walk, key, models, shorter
        self.model, self.bad, self.lost, self.pause = 0, 0, 0, 0.0

    @property
    def one_is_left(self) -> bool:
        """Whether a failure now would be followed by another try of the same model."""
        return self.bad < self.walk.ports.max_retries

    async def made_shorter(self, number: int, tokens: int) -> bool:
        """Once. Logs of earlier code know of no such thing: there the next attempt is on record."""
        decided = self._goes_on(number) and not self.walk.has(keys.overflow(self.key))
        if self._shorter is None or decided:
            return False
        shorter, self._shorter = self._shorter, None
        return await shorter(tokens)

    async def not_made(self, stage: Stage, number: int, refused: ModelRefused) -> None:
        """After an attempt that would not have fitted the window. Raises ModelGaveUp where no other can be made."""
        tokens = refused.estimated_input or 0
        shorter = await self.made_shorter(number, tokens)
        if not shorter and self.walk.in_this_life(keys.attempt(self.key, number)) and not self._goes_on(number):
            message = (
                f"the request is estimated at {tokens} tokens, which the context window of "
                f"{self.walk.ports.context_window} does not hold, and nothing more of it can be summed up or left out"
            )
            raise ModelGaveUp(
                ModelFailed(
                    stage=stage,
                    attempt=number,
                    error="context-overflow",
                    message=message,
                    retryable=False,
                    usage=Usage(),
                )
            )

    def _goes_on(self, number: int) -> bool:
        return self.walk.has(keys.attempt(self.key, number + 1))

    def after(self, key: str, failure: ModelFailed, *, goes_on: bool) -> None:
        """`goes_on`: the next attempt is on record, so there is nothing to decide."""
        if not self.walk.in_this_life(f"{key}/end"):
            return
        if failure.error == "lost":
            self.lost += 1
            if self.lost > MOST_LOST and not goes_on:
                raise ModelGaveUp(failure)
        elif failure.retryable and self.one_is_left:
            self.bad += 1
            if failure.retry_at is not None and not goes_on and not self.walk.has(f"{key}/due"):
                self.walk.ready()
                raise Suspend(Wait(key=f"{key}/due", reason="retry", until=failure.retry_at, at_deadline=Timer()))
        elif self.model + 1 < self.models:
            self.model, self.bad, self.pause = self.model + 1, 0, 0.0
        elif not goes_on:
            raise ModelGaveUp(failure)
