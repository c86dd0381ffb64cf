"""What the writer of a summary is shown: as much of what is to be summed up as fits, the newest part of it."""

from edge_agent.core.messages import UserMessage
from edge_agent.core.model import ModelRequest
from edge_agent.core.tokens import estimate
from edge_agent.loop import prompts
from edge_agent.loop.estimates import estimated_input
from edge_agent.loop.parts import Older

SHOWN = 0.6  # of the window
ASKED = 2_000  # characters of the request that the work is about
_LINE = 2  # tokens between two pieces


def summary_request(asked: str, older: Older, window: int) -> ModelRequest:
    """`asked`: what the work is about, blank where that is not known. `window`: in tokens."""

    def request(pieces: tuple[str, ...]) -> ModelRequest:
        about = prompts.one_line(asked, ASKED)
        text = prompts.to_sum_up(about, older.earlier, pieces, len(older.pieces) - len(pieces))
        return ModelRequest(
            system=prompts.SUMMARISER,
            messages=(UserMessage(text=text),),
            tool_choice="none",
            thinking="none",
        )

    return request(_newest(older, int(SHOWN * window) - estimated_input(request(()))))


def _newest(older: Older, most: int) -> tuple[str, ...]:
    """The last pieces that fit into so many tokens; of one that is longer than that, its end."""
    shown: list[str] = []
    for piece in reversed(older.pieces):
        tokens = estimate(piece) + _LINE
        if tokens > most:
            if not shown:
                shown.append(_end_of(piece, most))
            break
        shown.append(piece)
        most -= tokens
    return tuple(reversed(shown))


def _end_of(piece: str, most: int) -> str:
    """As much of it as is halved until it fits: how dense a text is may change in the middle of it."""
    end = piece
    while end and estimate(end) + _LINE > most:
        end = end[len(end) // 2 + 1 :]
    return f"…{end}"
