"""Build the Pyodide bundle that lets workerd run Python with nothing but npm within reach.

workerd asks a Cloudflare host for the bundle of the released Pyodide, which is not a package registry.
A bundle named `dev` is taken from a folder instead, without a checksum, and npm's `pyodide` holds all it
is made of. Released workerd carries the other half: the internal module `pyodide-internal:builtin_wrappers`
with the functions that stand in for what a Worker may not do (compile wasm, read entropy at start-up).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from scripts.capnp_message import Module, bundle_message

PYODIDE_VERSION = "314.0.6"
BUNDLE_NAME = "pyodide_dev.capnp.bin"
# The build is deterministic, so that one figure vouches for the inputs and for the file in use.
BUNDLE_SHA256 = "c7b0126dc397228d7c931e5563a2226531676e558e31f353dc621c7e5c2a5036"

WRAPPERS = (
    "newWasmModule",
    "getRandomValues",
    "patchedLoadLibData",
    "wasmInstantiate",
    "monotonicDateNow",
    "location",
    "addEventListener",
)


class BundleError(Exception):
    """The bundle cannot be built from what is installed, or is not the one expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """One textual change; `times` is how often `old` stands in the pinned version."""

    why: str
    old: str
    new: str
    times: int


# Each found by experiment to be needed, but for the last three, which released bundles have as well.
PATCHES = (
    Patch(
        why="a Worker may not compile wasm; workerd does it for Pyodide",
        old="new WebAssembly.Module(",
        new="newWasmModule(",
        times=4,
    ),
    Patch(
        why="entropy is forbidden while modules load; workerd meters it",
        old="crypto.getRandomValues(",
        new="getRandomValues(Module,",
        times=1,
    ),
    Patch(
        why="extension modules lie in workerd's read-only file system, not in Emscripten's",
        old="function loadLibData(){",
        new="function loadLibData(){const found=patchedLoadLibData(Module,libName,flags.rpath);"
        "return flags.loadAsync?Promise.resolve(found):found;",
        times=1,
    ),
    Patch(
        why="workerd imports the factory by name",
        old="export default _createPyodideModule;",
        new="export default _createPyodideModule;export{_createPyodideModule};",
        times=1,
    ),
    Patch(
        why="as above, the asynchronous way",
        old="WebAssembly.instantiate(",
        new="wasmInstantiate(",
        times=2,
    ),
    Patch(
        why="a clock that does not stand still while modules load",
        old="Date.now",
        new="monotonicDateNow",
        times=22,
    ),
    Patch(
        why="stable addresses of extension modules, for memory snapshots",
        old="getMemory(",
        new="Module.getMemoryPatched(Module,libName,",
        times=1,
    ),
)


def patched_loader(source: str) -> str:
    """Return Pyodide's loader with every patch applied; raise `BundleError` where one does not fit."""
    for patch in PATCHES:
        found = source.count(patch.old)
        if found != patch.times:
            message = f"{patch.old!r} stands {found} times in pyodide.asm.mjs, expected {patch.times} ({patch.why})"
            raise BundleError(message)
        source = source.replace(patch.old, patch.new)
    return f'import{{{",".join(WRAPPERS)}}}from"pyodide-internal:builtin_wrappers";{source}'


def build(package: Path, target: Path) -> None:
    """Write the bundle made of npm's `pyodide` in `package` to `target`, whole or not at all."""
    loader = patched_loader((package / "pyodide.asm.mjs").read_text(encoding="utf-8"))
    message = bundle_message(
        [
            Module(name="pyodideRuntime-internal:pyodide.asm", kind="src", content=loader.encode()),
            Module(
                name="pyodideRuntime-internal:pyodide.asm.wasm",
                kind="wasm",
                content=(package / "pyodide.asm.wasm").read_bytes(),
            ),
            Module(
                name="pyodideRuntime-internal:python_stdlib.zip",
                kind="data",
                content=(package / "python_stdlib.zip").read_bytes(),
            ),
        ]
    )
    found = hashlib.sha256(message).hexdigest()
    if found != BUNDLE_SHA256:
        raise BundleError(f"the bundle's SHA-256 is {found}, expected {BUNDLE_SHA256}")
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_suffix(".tmp")
    draft.write_bytes(message)
    draft.replace(target)
