"""What `wrangler deploy` would upload, with the production flags and nothing else."""

import json
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from scripts.bundle_size import LIMIT, STAND_IN_MARK, by_package, find_faults, make_bundle, print_missing, print_table
from scripts.project import LOCAL_FLAGS
from scripts.serve import NODE_MODULES, quiet_environment
from scripts.stage import ROOT

pytestmark = pytest.mark.workerd


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder laid out as a deploy finds it, and in `out` what wrangler would upload."""
    folder = tmp_path_factory.mktemp("deploy") / "project"
    make_bundle(folder)
    return folder


def test_the_bundle_fits_the_free_plan(project: Path) -> None:
    """With what is installed here; what the real rpds-py would add is printed."""
    packages = by_package(project / "out")
    print()
    total = print_table(packages)
    print_missing(packages, total)
    assert total < LIMIT


def test_no_stand_in_no_local_flag_and_no_secret_is_deployed(project: Path) -> None:
    assert list(find_faults(project / "out", project / "wrangler.json")) == []


def test_what_must_not_be_deployed_is_found(project: Path, tmp_path: Path) -> None:
    config = json.loads((project / "wrangler.json").read_text())
    config["compatibility_flags"].append(LOCAL_FLAGS[0])
    (tmp_path / "wrangler.json").write_text(json.dumps(config))
    module = tmp_path / "out/python_modules/rpds"
    module.mkdir(parents=True)
    (module / "__init__.py").write_bytes(STAND_IN_MARK + b" = True\n")
    (tmp_path / "out/.dev.vars").touch()
    faults = "\n".join(find_faults(tmp_path / "out", tmp_path / "wrangler.json"))
    for named in (LOCAL_FLAGS[0], "a stand-in: python_modules/rpds/__init__.py", "a secrets file: .dev.vars"):
        assert named in faults


def test_the_committed_configuration_is_the_production_one() -> None:
    config = tomllib.loads((ROOT / "wrangler.toml").read_text(encoding="utf-8"))
    assert "python_workers" in config["compatibility_flags"]
    assert not set(config["compatibility_flags"]) & set(LOCAL_FLAGS)
    assert not {"vars", "dev", "env"} & set(config)
    bound = {binding["class_name"] for binding in config["durable_objects"]["bindings"]}
    assert bound == {name for migration in config["migrations"] for name in migration["new_sqlite_classes"]}


def test_wrangler_deploy_takes_the_committed_configuration_as_it_stands(project: Path, tmp_path: Path) -> None:
    for folder in ("src", "durable_objects", "scripts", "web"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "wrangler.toml", tmp_path)
    (tmp_path / "python_modules").symlink_to(project / "python_modules", target_is_directory=True)
    wrangler = [str(NODE_MODULES / "node/bin/node"), str(NODE_MODULES / "wrangler/bin/wrangler.js")]
    done = subprocess.run(
        [*wrangler, "deploy", "--dry-run", "--outdir=out"],
        cwd=tmp_path,
        env=quiet_environment(tmp_path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert _uploaded(tmp_path / "out") == _uploaded(project / "out")


def _uploaded(bundle: Path) -> set[Path]:
    return {path.relative_to(bundle) for path in bundle.rglob("*") if path.is_file()}
