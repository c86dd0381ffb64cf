"""The library of skills in SQL: those stored over the API, with their files, and the lessons of agents."""

import json
from typing import Any, cast

from edge_agent.core.errors import Refusal
from edge_agent.core.messages import JsonObject
from edge_agent.core.ports import Clock
from edge_agent.core.skill_library import MOST_LESSONS, LibraryMethod, SkillLibrary
from edge_agent.core.skills import MOST_FILES, MOST_TEXT, listed
from edge_agent.storage.sql import Sql, Value

MOST_STORED = 200
MOST_OF_FILES = 4_194_304  # bytes of all files of one skill
REMEMBERED = 1_000  # calls that have saved or forgotten a lesson: how far back a repeat is known

TABLES = (
    """create table if not exists skill(
        name text primary key, origin text not null, description text not null, text text not null,
        revision integer not null, at integer not null, run_id text, sources text not null)""",
    """create table if not exists file(
        name text not null, path text not null, content text not null, bytes integer not null,
        primary key(name, path))""",
    "create table if not exists done(number integer primary key autoincrement, key text unique, answer text not null)",
)
_COLUMNS = "name, origin, description, revision, at, run_id, sources"


class SqlSkills:
    """Tables are made by the first write, so that asking leaves nothing behind."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    def answer(self, method: str, payload: JsonObject, now: int) -> JsonObject:
        """List        {"origins"} -> {"skills": […]}, by name; descriptions cut to a line of an index
        get         {"name"} -> {"skill": {…, "text", "files": [{"path", "bytes"}]}} or nothing
        put         {"name", "description", "text"} -> {"created"}; takes the place of a lesson of that name
        delete      {"name"} -> nothing
        file        {"name", "path"} -> {"content"} or nothing
        put_file    {"name", "path", "content"} -> {"created"};   delete_file {"name", "path"} -> nothing
        learn       {"name", "description", "text", "sources", "run_id", "key"} -> {"revision", "update"}
        forget      {"name", "key"} -> nothing

        `now` in ms. Raises Refusal: 404 for what there is not, 409 for what is the user's or one too many."""
        reads = {"list": self._list, "get": self._get, "file": self._file}
        if method in reads:
            return reads[method](**payload) if self._begun() else {"skills": []} if method == "list" else {}
        writes = {
            "put": self._put,
            "delete": self._delete,
            "put_file": self._put_file,
            "delete_file": self._delete_file,
            "learn": self._learn,
            "forget": self._forget,
        }
        if method in ("put", "learn"):
            payload = {**payload, "now": now}
        return self._sql.transaction(lambda: self._write(writes[method], payload))

    def _write(self, work: Any, payload: JsonObject) -> JsonObject:
        for table in TABLES:
            self._sql.run(table)
        key = payload.get("key")
        if key is not None and (done := self._sql.run("select answer from done where key = ?", key)):
            return json.loads(str(done[0][0]))
        answer = cast(JsonObject, work(**{name: value for name, value in payload.items() if name != "key"}))
        if key is not None:
            self._sql.run("insert into done(key, answer) values(?, ?)", key, json.dumps(answer))
            self._sql.run("delete from done where number <= (select max(number) from done) - ?", REMEMBERED)
        return answer

    # -- reading
    def _list(self, *, origins: list[str]) -> JsonObject:
        rows = self._sql.run(f"select {_COLUMNS} from skill order by name")  # noqa: S608 - a constant
        found = [_described(row) for row in rows]
        shown = [{**one, "description": listed(one["description"])} for one in found]
        return {"skills": [one for one in shown if one["origin"] in origins]}

    def _get(self, *, name: str) -> JsonObject:
        rows = self._sql.run(f"select {_COLUMNS}, text from skill where name = ?", name)  # noqa: S608 - a constant
        if not rows:
            return {}
        files = self._sql.run("select path, bytes from file where name = ? order by path", name)
        named = [{"path": path, "bytes": size} for path, size in files]
        return {"skill": {**_described(rows[0]), "text": rows[0][-1], "files": named}}

    def _file(self, *, name: str, path: str) -> JsonObject:
        rows = self._sql.run("select content from file where name = ? and path = ?", name, path)
        return {"content": rows[0][0]} if rows else {}

    # -- what a user stores
    def _put(self, *, name: str, description: str, text: str, now: int) -> JsonObject:
        before = self._origin(name)
        if before != "stored" and self._count("stored") >= MOST_STORED:
            message = f"{MOST_STORED} skills are stored, which is the most. Delete one before you store another."
            raise Refusal(409, "too_many_skills", message)
        revision = self._revision(name) + 1 if before == "stored" else 1
        values = (name, "stored", description, text, revision, now, None, "[]")
        self._sql.run("insert or replace into skill values(?, ?, ?, ?, ?, ?, ?, ?)", *values)
        return {"created": before != "stored"}

    def _delete(self, *, name: str) -> JsonObject:
        self._require(name)
        self._sql.run("delete from skill where name = ?", name)
        self._sql.run("delete from file where name = ?", name)
        return {}

    def _put_file(self, *, name: str, path: str, content: str) -> JsonObject:
        if self._require(name) != "stored":
            raise Refusal(409, "skill_learned", f"{name} is a lesson of an agent: it has no files.")
        size = len(content.encode())
        if size > MOST_TEXT:
            raise Refusal(413, "file_too_large", f"A file of a skill has up to {MOST_TEXT} bytes; this has {size}.")
        others = self._sql.run("select count(*), sum(bytes) from file where name = ? and path <> ?", name, path)[0]
        if int(cast(int, others[0])) >= MOST_FILES:
            raise Refusal(409, "too_many_files", f"A skill has up to {MOST_FILES} files. Delete one first.")
        if int(cast(int, others[1] or 0)) + size > MOST_OF_FILES:
            message = f"The files of a skill have up to {MOST_OF_FILES} bytes in all. Delete one first."
            raise Refusal(409, "files_too_large", message)
        created = not self._file(name=name, path=path)
        self._sql.run("insert or replace into file values(?, ?, ?, ?)", name, path, content, size)
        return {"created": created}

    def _delete_file(self, *, name: str, path: str) -> JsonObject:
        self._require(name)
        if not self._file(name=name, path=path):
            raise Refusal(404, "unknown_file", f"The skill {name} has no file {path[:200]}.")
        self._sql.run("delete from file where name = ? and path = ?", name, path)
        return {}

    # -- what an agent learns
    def _learn(
        self, *, name: str, description: str, text: str, sources: list[str], run_id: str, now: int
    ) -> JsonObject:
        before = self._origin(name)
        if before == "stored":
            raise Refusal(409, "skill_of_the_user", f"There is a skill {name} of the user's. Take another name.")
        if before is None and self._count("learned") >= MOST_LESSONS:
            message = f"There are {MOST_LESSONS} lessons, which is the most. Forget one, or rewrite one that is near."
            raise Refusal(409, "too_many_lessons", message)
        revision = self._revision(name) + 1 if before else 1
        values = (name, "learned", description, text, revision, now, run_id, json.dumps(sources))
        self._sql.run("insert or replace into skill values(?, ?, ?, ?, ?, ?, ?, ?)", *values)
        return {"revision": revision, "update": before is not None}

    def _forget(self, *, name: str) -> JsonObject:
        if self._require(name) != "learned":
            raise Refusal(409, "skill_of_the_user", f"{name} is a skill of the user's, not a lesson: it stays.")
        return self._delete(name=name)

    def _origin(self, name: str) -> str | None:
        rows = self._sql.run("select origin from skill where name = ?", name)
        return str(rows[0][0]) if rows else None

    def _require(self, name: str) -> str:
        origin = self._origin(name)
        if origin is None:
            raise Refusal(404, "unknown_skill", f"There is no skill {name[:100]!r} in the library.")
        return origin

    def _revision(self, name: str) -> int:
        return int(cast(int, self._sql.run("select revision from skill where name = ?", name)[0][0]))

    def _count(self, origin: str) -> int:
        return int(cast(int, self._sql.run("select count(*) from skill where origin = ?", origin)[0][0]))

    def _begun(self) -> bool:
        return bool(self._sql.run("select 1 from sqlite_master where type = 'table' and name = 'skill'"))


def _described(row: tuple[Value, ...]) -> JsonObject:
    name, origin, description, revision, at, run_id, sources = row[:7]
    learned = {"run_id": run_id, "sources": json.loads(str(sources))} if origin == "learned" else {}
    return {
        "name": name,
        "origin": origin,
        "description": description,
        "revision": revision,
        "at": at,
        **learned,
    }


def library_over(sql: Sql, clock: Clock) -> SkillLibrary:
    """A library in this process."""
    skills = SqlSkills(sql)

    async def ask(method: LibraryMethod, payload: JsonObject) -> JsonObject:
        return skills.answer(method, payload, clock.now())

    return SkillLibrary(ask=ask)
