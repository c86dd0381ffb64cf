"""The run that a path names."""

from typing import Annotated

from fastapi import Path

from edge_agent.wire.run_ids import RUN_ID_PATTERN

RunId = Annotated[str, Path(pattern=RUN_ID_PATTERN, description="As POST /v1/runs answered it.")]
