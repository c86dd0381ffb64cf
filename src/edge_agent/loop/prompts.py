"""Every word the loop itself says to a model, in one place."""

ALONE = (
    "Work on your own: look things up with the tools you have, decide, and state the assumptions you made. "
    "Never ask for permission in text. Answer in the language of the user. Say plainly what could not be done."
)
LAST_ROUND = "No more tools can be used in this run. Give your final answer now, from what is known."


def system(instructions: str) -> str:
    """The run-stable part, the same in every round."""
    return f"{instructions}\n\n{ALONE}" if instructions else ALONE


def unknown_outcome(tool: str, cause: str) -> str:
    told = {"lost": "its answer was lost", "timed-out": "it did not answer in time"}.get(cause, cause)
    return f"{tool}: the outcome is unknown ({told}). It may have happened. Check before you call it again."


def clipped(dropped: int) -> str:
    return f"\n[… {dropped} characters left out …]\n"
