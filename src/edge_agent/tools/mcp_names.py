"""Names of an agent's MCP tools: `server__tool`, which every provider takes, whatever the server calls it."""

import hashlib
import re
from collections.abc import Sequence

MAX_NAME = 64
_STRANGE = re.compile("[^a-zA-Z0-9_-]")


def mounted(server: str, originals: Sequence[str]) -> dict[str, str]:
    """Name by original, in the order given; an original that comes twice counts once.

    Names that need no change are given out first; where others would then clash they get _2, _3 … in the order of their
    originals, so that the order in which a server lists its tools decides nothing.
    """
    wanted = {original: _shortened(f"{server}__{_STRANGE.sub('_', original)}", original) for original in originals}
    taken: set[str] = set()
    names: dict[str, str] = {}
    for original in sorted(wanted, key=lambda original: (wanted[original] != f"{server}__{original}", original)):
        name, number = wanted[original], 1
        while name in taken:
            number += 1
            end = f"_{number}"
            name = wanted[original][: MAX_NAME - len(end)] + end
        taken.add(name)
        names[original] = name
    return {original: names[original] for original in wanted}


def _shortened(name: str, original: str) -> str:
    if len(name) <= MAX_NAME:
        return name
    return f"{name[: MAX_NAME - 9]}_{hashlib.sha256(original.encode(errors='replace')).hexdigest()[:8]}"
