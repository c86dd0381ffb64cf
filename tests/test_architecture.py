"""The layers, sizes and habits of the code, read from its syntax trees: what each review would have to look for."""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SRC = ROOT / "src"
PLATFORM = {"js", "pyodide", "workers"}

# folder under src/edge_agent (or the top of it) -> (parts of our own package, packages from outside) it may import.
CORE, LOOP, WIRE, MODELS, TOOLS, STORAGE = "core", "loop", "wire", "models", "tools", "storage"
LAYERS: dict[str, tuple[set[str], set[str]]] = {
    "core": ({CORE}, set()),
    "loop": ({CORE, LOOP}, set()),
    "wire": ({CORE, WIRE}, {"pydantic"}),
    "models": ({CORE, WIRE, MODELS}, {"httpx2"}),
    "tools": ({CORE, WIRE, TOOLS}, {"pydantic", "mcp", "mcp_types", "httpx2", "anyio"}),
    "storage": ({CORE, STORAGE}, set()),
    "top": ({CORE, LOOP, WIRE, MODELS, TOOLS, STORAGE, "top"}, {"httpx2"}),
    "testing": ({CORE, LOOP, WIRE, MODELS, TOOLS, STORAGE, "top", "testing", "http"}, {"pydantic"}),
    "http": ({CORE, WIRE, "http"}, {"fastapi", "pydantic", "pydantic_core", "starlette"}),
    "cloudflare": (
        {CORE, LOOP, WIRE, MODELS, TOOLS, STORAGE, "top", "http", "cloudflare"},
        {"pydantic", "fastapi", "httpx2", "mcp", *PLATFORM},
    ),
    "cli": ({WIRE, "cli"}, {"httpx2", "websockets", "typer", "rich", "prompt_toolkit"}),
}
MOST_LINES, MOST_FUNCTION_LINES, MOST_IGNORES = 400, 60, 10
VAGUE = {"utils", "util", "helpers", "helper", "manager", "managers", "base", "common", "misc"}
PATCHES = re.compile(r"\bmonkeypatch\b|\bunittest\.mock\b|\bMagicMock\b|\bmocker\b|\bsys\.modules\[[^\]]*\]\s*=[^=]")
SKIPS = {"pytest.mark.skip", "pytest.mark.skipif", "pytest.mark.xfail"}
# The lean import of the MCP client puts two bare packages where their __init__ files would be; see its docstring.
LEAN_IMPORT = SRC / "edge_agent/tools/mcp_import.py"


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def python_files(*folders: str) -> list[Path]:
    return sorted(
        path for folder in folders for path in (ROOT / folder).rglob("*.py") if "__pycache__" not in path.parts
    )


OURS = python_files("src", "durable_objects")
EVERYTHING = [*OURS, *python_files("tests", "scripts", "bench")]


def module_of(path: Path) -> str:
    parts = path.relative_to(SRC if path.is_relative_to(SRC) else ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in OURS}


def imports(path: Path, *, at_import: bool = False) -> Iterator[str]:
    """The modules a file imports, names of submodules included; `at_import`: only those it needs to be imported."""
    nodes = _outside_functions(tree(path)) if at_import else ast.walk(tree(path))
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            module = node.module or ""
            submodules = {alias.name for alias in node.names if f"{module}.{alias.name}" in MODULES}
            if submodules < {alias.name for alias in node.names}:
                yield module
            yield from (f"{module}.{name}" for name in submodules)


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield child
            yield from _outside_functions(child)


def layer_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and (SRC / "edge_agent" / parts[1]).is_dir() else "top"


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


# -- the import law
@pytest.mark.parametrize("path", [p for p in OURS if p.is_relative_to(SRC / "edge_agent")], ids=shown)
def test_a_module_imports_only_what_its_layer_may(path: Path) -> None:
    layer = layer_of(module_of(path))
    own, outside = LAYERS[layer]
    for name in imports(path):
        head = name.split(".")[0]
        if head == "edge_agent":
            assert layer_of(name) in own, f"{layer} imports {name}"
        else:
            assert head in outside or head in sys.stdlib_module_names, f"{layer} imports {name}"


def test_only_the_platforms_own_folder_knows_the_platform() -> None:
    allowed = {
        SRC / "worker.py",
        *(ROOT / "durable_objects").glob("*.py"),
        *(SRC / "edge_agent/cloudflare").rglob("*.py"),
    }
    for path in OURS:
        named = {name.split(".")[0] for name in imports(path)} & PLATFORM
        assert not named or path in allowed, f"{shown(path)} imports {named}"


def test_the_agents_of_a_deployment_use_the_public_names_alone() -> None:
    used = {name for name in imports(SRC / "agents.py") if name.startswith("edge_agent")}
    assert used <= {"edge_agent", "edge_agent.tool"}  # the latter is a function and a module


def test_the_classes_of_objects_hold_no_policy_and_name_what_they_are_made_of_in_one_place() -> None:
    concrete = {"edge_agent.models", "edge_agent.tools", "edge_agent.storage"}
    for path in (ROOT / "durable_objects").glob("*.py"):
        named = {name for name in imports(path) if any(name.startswith(f"{layer}.") for layer in concrete)}
        assert not named or path.name == "wiring.py", f"{shown(path)} names {named}"


def test_no_module_needs_itself_to_be_imported() -> None:
    needs = {
        name: {other for other in imports(path, at_import=True) if other in MODULES} for name, path in MODULES.items()
    }
    done: set[str] = set()

    def visit(module: str, way: list[str]) -> None:
        assert module not in way, " -> ".join([*way[way.index(module) :], module])
        if module not in done:
            for other in sorted(needs[module] - {module}):
                visit(other, [*way, module])
            done.add(module)

    for module in MODULES:
        visit(module, [])


# -- sizes and names
def test_no_file_and_no_function_is_too_long() -> None:
    long = [f"{shown(p)}: {n} lines" for p in EVERYTHING if (n := _lines(p)) > _most(p)]
    for path in OURS:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - node.lineno + 1
                if lines > MOST_FUNCTION_LINES:
                    long.append(f"{shown(path)}: {node.name} has {lines} lines")
    assert not long, long


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def _most(path: Path) -> int:
    """A file of tests or a test server is a list: it may be longer, not endless."""
    return MOST_LINES if path in OURS else 2 * MOST_LINES


def test_no_module_has_a_name_that_says_nothing() -> None:
    vague = [shown(path) for path in EVERYTHING if path.stem.strip("_") in VAGUE or VAGUE & set(path.parent.parts)]
    assert not vague


def test_no_local_module_takes_the_name_of_a_package_we_import() -> None:
    outside = {name.split(".")[0] for path in OURS for name in imports(path)} - {
        "edge_agent",
        "agents",
        "durable_objects",
    }
    tops = {path.stem for path in SRC.glob("*.py")} | {path.name for path in SRC.iterdir() if path.is_dir()}
    assert not tops & outside


# -- habits
def test_nothing_is_patched_fakes_are_passed_in() -> None:
    me = Path(__file__)
    patched = [
        shown(p) for p in EVERYTHING if p not in (LEAN_IMPORT, me) and PATCHES.search(p.read_text(encoding="utf-8"))
    ]
    assert not patched


def test_type_ignores_are_few_and_each_has_its_reason() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    comment = re.compile(r"#\s*(?:type|pyright):\s*ignore(?P<rest>.*)$")
    for path in EVERYTHING:
        if path != Path(__file__):
            for line in path.read_text(encoding="utf-8").splitlines():
                if match := comment.search(line):
                    found[shown(path)].append(match["rest"])
    every = [(path, rest) for path, rests in found.items() for rest in rests]
    assert len(every) <= MOST_IGNORES, every
    without_reason = [path for path, rest in every if not re.match(r"\[[\w, ]+\]\s*(#|\(|-).{8,}", rest)]
    assert not without_reason, without_reason


def test_no_test_is_skipped_without_a_reason_in_words() -> None:
    without_reason: list[str] = []
    for path in python_files("tests"):
        nodes = list(ast.walk(tree(path)))
        calls = [node for node in nodes if isinstance(node, ast.Call)]
        reasoned = [call.func for call in calls if any(word.arg == "reason" for word in call.keywords)]
        without_reason += [
            f"{shown(path)}:{node.lineno}"
            for node in nodes
            if isinstance(node, ast.Attribute) and ast.unparse(node) in SKIPS and node not in reasoned
        ]
    assert not without_reason, without_reason


def test_lock_files_name_no_host() -> None:
    for path in (ROOT / "package-lock.json", *sorted((ROOT / "requirements").iterdir())):
        assert "://" not in path.read_text(), f"{path.name}: make it with `make lock`"


def test_names_of_tests_are_sentences() -> None:
    short = [
        f"{shown(path)}: {node.name}"
        for path in python_files("tests")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and node.name.count("_") < 2
    ]
    assert not short
