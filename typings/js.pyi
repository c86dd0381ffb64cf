# The JavaScript globals of a Worker, as Pyodide shows them: no shapes are known to Python.
from typing import Any

def __getattr__(name: str) -> Any: ...
