# What the code uses of pyodide.ffi; shapes of JavaScript values are Any.
from collections.abc import Callable
from typing import Any

class JsException(Exception):
    name: str
    message: str
    stack: str
    def __getattr__(self, name: str) -> Any: ...

class JsProxy:
    def to_py(self, *, depth: int = ..., default_converter: Callable[..., Any] | None = ...) -> Any: ...
    def to_bytes(self) -> bytes: ...
    def destroy(self) -> None: ...
    def __getattr__(self, name: str) -> Any: ...

def create_once_callable(obj: Callable[..., Any], /) -> Any: ...
def create_proxy(obj: Any, /, *, capture_this: bool = ..., roundtrip: bool = ...) -> Any: ...
def to_js(
    obj: Any,
    /,
    *,
    depth: int = ...,
    dict_converter: Callable[..., Any] | None = ...,
    default_converter: Callable[..., Any] | None = ...,
    create_pyproxies: bool = ...,
) -> Any: ...
def run_sync(awaitable: Any, /) -> Any: ...

jsnull: Any
