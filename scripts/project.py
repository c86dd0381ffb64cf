"""Lay out a folder that wrangler can serve or bundle, made from this checkout.

wrangler takes the Worker, its packages and its secrets from beside its configuration file. A folder per
server keeps servers apart: several run side by side, each with its own code, variables and flags, and
`wrangler.toml` stays what is deployed.

    wrangler.json     wrangler.toml, with `main` here and the local-only flags, without what needs an account
    .dev.vars         the variables, readable by the owner alone
    worker/           src/ and durable_objects/, staged
    python_modules    the Worker's packages
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scripts.stage import ROOT, stage

# Make workerd take the Pyodide bundle from a folder. Refused on deploy, so they are nowhere but here.
LOCAL_FLAGS = ("python_workers_development", "experimental")


def lay_out(
    project: Path,
    *,
    live: bool = False,
    variables: Mapping[str, str] | None = None,
    overlay: Path | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Path:
    """Make `project` ready for `wrangler dev` and return its configuration file.

    `live` lets wrangler stage and reload whenever a source changes; without it the folder is a copy that no
    edit reaches. `overlay` is a folder whose files are put over the staged ones (another agents.py, another
    worker.py); `settings` replaces keys at the top of wrangler.toml. Neither goes with `live`.
    """
    if live and (overlay or settings):
        raise ValueError("an overlay or settings would be lost at the next reload: leave out live")
    project.mkdir(parents=True, exist_ok=True)
    config = production_config()
    del config["ai"]  # remote always: wrangler would ask for an account
    config["compatibility_flags"] += LOCAL_FLAGS
    own_variables = ""
    if live:
        config["build"] = _live_build(project)
        config["assets"]["directory"] = os.path.relpath(ROOT / "web", project)
        own_variables = _text_of(ROOT / ".dev.vars")  # what the user of wrangler keeps there counts here too
    else:
        copy_sources(project)
    if overlay:
        shutil.copytree(overlay, project / "worker", dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    _link(project / "python_modules", ROOT / "python_modules")
    given = "".join(f"{name}={quoted(name, value)}\n" for name, value in (variables or {}).items())
    _write_private(project / ".dev.vars", f"{own_variables}\n{given}")
    return write_config(project, {**config, **(settings or {})})


def production_config() -> dict[str, Any]:
    """Return wrangler.toml as it is deployed, but for the places of files, which are those of a laid out folder."""
    config = _wrangler_toml()
    del config["build"]
    config["main"] = "worker/worker.py"
    config["assets"]["directory"] = "web"
    return config


def copy_sources(project: Path) -> None:
    """Copy the Worker and the console page to `project`."""
    stage(project / "worker")
    shutil.rmtree(project / "web", ignore_errors=True)
    if (ROOT / "web").is_dir():
        shutil.copytree(ROOT / "web", project / "web")
    (project / "web").mkdir(exist_ok=True)


def write_config(project: Path, config: Mapping[str, Any]) -> Path:
    """Write wrangler's configuration and return its path."""
    path = project / "wrangler.json"
    path.write_text(json.dumps(config, indent=2))
    return path


def quoted(name: str, value: str) -> str:
    """Return `value` as wrangler's reader of .dev.vars takes it literally; raise where it has no way to.

    That reader knows three quotes and no escapes, but those of line ends between double quotes.
    """
    if not value.endswith("\\"):
        if "'" not in value:
            return f"'{value}'"
        if "`" not in value:
            return f"`{value}`"
        if '"' not in value and not re.search(r"\\[nr]", value):
            return f'"{value}"'
    raise ValueError(
        f"{name}: a value with all of ' ` \" in it, or a backslash at its end, cannot be handed to wrangler"
    )


def _wrangler_toml() -> dict[str, Any]:
    return tomllib.loads((ROOT / "wrangler.toml").read_text(encoding="utf-8"))


def _live_build(project: Path) -> dict[str, Any]:
    command = [sys.executable, str(ROOT / "scripts" / "stage.py"), str(project.resolve() / "worker")]
    watched = [os.path.relpath(ROOT / folder, project) for folder in _wrangler_toml()["build"]["watch_dir"]]
    return {"command": shlex.join(command), "watch_dir": watched}


def _text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _link(path: Path, target: Path) -> None:
    if path.is_symlink():
        path.unlink()
    path.symlink_to(target, target_is_directory=True)


def _write_private(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
