import asyncio

import pytest

from edge_agent.models.patience import OutOfPatience, Patience
from edge_agent.testing import in_virtual_time


async def forever() -> None:
    await asyncio.Event().wait()


async def test_what_comes_in_time_is_given() -> None:
    patience = Patience(stall=1, total=1)
    assert [await patience.wait(asyncio.sleep(0, number)) for number in range(3)] == [0, 1, 2]
    patience.stop()


@pytest.mark.parametrize(
    "stall, total, limit",
    [(0.01, None, "stalled"), (None, 0.01, "timeout"), (0.01, 5.0, "stalled"), (5.0, 0.01, "timeout")],
)
def test_the_shorter_limit_ends_a_wait(stall: float | None, total: float | None, limit: str) -> None:
    async def waits() -> None:
        with pytest.raises(OutOfPatience) as caught:
            await Patience(stall=stall, total=total).wait(forever())
        assert (caught.value.limit, caught.value.seconds) == (limit, 0.01)
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0

    in_virtual_time(waits())


def test_the_limit_of_the_whole_is_over_all_waits() -> None:
    async def waits() -> None:
        patience = Patience(stall=None, total=45)
        for _ in range(4):
            await patience.wait(asyncio.sleep(10))
        with pytest.raises(OutOfPatience):
            await patience.wait(asyncio.sleep(10))

    in_virtual_time(waits())


def test_silence_begins_anew_with_each_wait() -> None:
    async def waits() -> None:
        patience = Patience(stall=50, total=None)
        for _ in range(5):
            await patience.wait(asyncio.sleep(40))
        await asyncio.sleep(60)  # a consumer takes its time
        await patience.wait(asyncio.sleep(40))
        with pytest.raises(OutOfPatience):
            await patience.wait(forever())

    in_virtual_time(waits())


async def test_without_limits_there_is_no_timer() -> None:
    assert await Patience(stall=None, total=None).wait(asyncio.sleep(0, 1)) == 1


async def test_a_cancel_from_outside_stays_a_cancel_also_together_with_ours() -> None:
    async def run(patience: Patience) -> None:
        await patience.wait(forever())

    task = asyncio.ensure_future(run(Patience(stall=60, total=None)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    both = asyncio.ensure_future(run(Patience(stall=0, total=None)))
    asyncio.get_running_loop().call_soon(both.cancel)
    await asyncio.sleep(0)
    both.cancel()
    with pytest.raises(asyncio.CancelledError):
        await both


async def test_an_error_of_what_is_awaited_passes() -> None:
    async def fails() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        await Patience(stall=1, total=None).wait(fails())
