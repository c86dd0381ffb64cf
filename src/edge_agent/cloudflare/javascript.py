"""Python values as the JavaScript of the platform takes them."""

from collections.abc import Mapping
from typing import Any

import js
from pyodide.ffi import to_js


def js_object(values: Mapping[str, Any]) -> Any:
    """A plain object; what lies within is converted with it."""
    return to_js(values, dict_converter=js.Object.fromEntries)
