"""Skills: those of the code, which can be read; those that were stored, which can be changed; lessons of agents."""

from typing import Annotated, NoReturn

from fastapi import APIRouter, Path, Response
from fastapi.responses import JSONResponse

from edge_agent.core.errors import ConfigError, Refusal
from edge_agent.core.messages import JsonObject
from edge_agent.core.skill_library import skill_of
from edge_agent.core.skills import Skill, listed, name_fault, path_fault
from edge_agent.http.openapi import problems
from edge_agent.http.ports import Deps
from edge_agent.wire.skills import (
    PutSkill,
    PutSkillFile,
    SkillFile,
    SkillFileShown,
    SkillInfo,
    SkillsAnswer,
    SkillShown,
)

Name = Annotated[str, Path(max_length=200, description="Of the skill, which is that of its folder too.")]
FilePath = Annotated[str, Path(max_length=600, description="Inside the skill's folder, for example references/a.md.")]


def skill_routes(deps: Deps) -> APIRouter:
    router = APIRouter(tags=["skills"])
    _about_skills(router, deps)
    _about_files(router, deps)
    return router


def _about_skills(router: APIRouter, deps: Deps) -> None:
    @router.get("/v1/skills", response_model=SkillsAnswer, responses=problems(503))
    async def list_skills() -> JSONResponse:
        """Every skill by name. One of the code hides a stored one of the same name."""
        kept = (await deps.library.ask("list", {"origins": ["stored", "learned"]}))["skills"]
        own = [
            SkillInfo(name=skill.name, description=listed(skill.description), origin="bundled")
            for skill in deps.offer.skills().values()
        ]
        found = {info.name: info for info in [*(SkillInfo(**one) for one in kept), *own]}
        answer = SkillsAnswer(skills=tuple(found[name] for name in sorted(found)))
        return JSONResponse(answer.model_dump(mode="json", exclude_none=True))

    @router.get("/v1/skills/{name}", response_model=SkillShown, responses=problems(404, 422, 503))
    async def read_skill(name: Name) -> JSONResponse:
        """A skill with its instructions and the list of its files."""
        shown = await _shown(deps, name)
        return JSONResponse(shown.model_dump(mode="json", exclude_none=True))

    @router.put(
        "/v1/skills/{name}",
        response_model=SkillShown,
        responses={201: {"model": SkillShown}, **problems(400, 409, 413, 415, 422, 503)},
    )
    async def put_skill(name: Name, body: PutSkill) -> JSONResponse:
        """Store a skill, or its next revision; its files stay. It takes the place of a lesson of that name."""
        _require_free(deps, name)
        skill = _parsed(name, body.content)
        payload: JsonObject = {"name": name, "description": skill.description, "text": body.content}
        created = (await deps.library.ask("put", payload))["created"]
        shown = await _shown(deps, name)
        return JSONResponse(shown.model_dump(mode="json", exclude_none=True), status_code=201 if created else 200)

    @router.delete("/v1/skills/{name}", status_code=204, responses=problems(404, 409, 422, 503))
    async def delete_skill(name: Name) -> Response:
        """Delete a stored skill with its files, or a lesson. Runs that have it loaded keep its text. One of the code
        that hides it stays."""
        if "skill" not in await deps.library.ask("get", {"name": name}):
            _require_free(deps, name)
        await deps.library.ask("delete", {"name": name})
        return Response(status_code=204)


def _about_files(router: APIRouter, deps: Deps) -> None:
    path_of_a_file = "/v1/skills/{name}/files/{path:path}"

    @router.get(path_of_a_file, response_model=SkillFileShown, responses=problems(404, 422, 503))
    async def read_skill_file(name: Name, path: FilePath) -> JSONResponse:
        """A text file of a skill."""
        _require_path(name, path)
        own = deps.offer.skills().get(name)
        content = own.files.get(path) if own else await deps.library.file(name, path)
        if content is None:
            raise Refusal(404, "unknown_file", f"The skill {name} has no file {path[:200]}, or there is no such skill.")
        return JSONResponse(SkillFileShown(path=path, content=content).model_dump())

    @router.put(
        path_of_a_file,
        response_model=SkillFile,
        responses={201: {"model": SkillFile}, **problems(400, 404, 409, 413, 415, 422, 503)},
    )
    async def put_skill_file(name: Name, path: FilePath, body: PutSkillFile) -> JSONResponse:
        """Store a text file beside a stored skill, up to 256 KB."""
        _require_path(name, path)
        _require_free(deps, name)
        answer = await deps.library.ask("put_file", {"name": name, "path": path, "content": body.content})
        kept = SkillFile(path=path, bytes=len(body.content.encode()))
        return JSONResponse(kept.model_dump(), status_code=201 if answer["created"] else 200)

    @router.delete(path_of_a_file, status_code=204, responses=problems(404, 409, 422, 503))
    async def delete_skill_file(name: Name, path: FilePath) -> Response:
        """Delete a file of a stored skill."""
        _require_path(name, path)
        _require_free(deps, name)
        await deps.library.ask("delete_file", {"name": name, "path": path})
        return Response(status_code=204)


async def _shown(deps: Deps, name: str) -> SkillShown:
    """Raises Refusal 404."""
    if own := deps.offer.skills().get(name):
        files = tuple(SkillFile(path=path, bytes=len(text.encode())) for path, text in sorted(own.files.items()))
        return _described(own, {"origin": "bundled"}, files)
    kept = (await deps.library.ask("get", {"name": name})).get("skill")
    if kept is None:
        raise Refusal(404, "unknown_skill", f"There is no skill {name!r}. GET /v1/skills lists those there are.")
    about = {field: kept.get(field) for field in ("origin", "revision", "at", "run_id", "sources")}
    return _described(skill_of(kept), about, tuple(SkillFile(**file) for file in kept["files"]))


def _described(skill: Skill, about: JsonObject, files: tuple[SkillFile, ...]) -> SkillShown:
    return SkillShown(
        name=skill.name,
        description=skill.description,
        instructions=skill.instructions,
        license=skill.license,
        compatibility=skill.compatibility,
        metadata=dict(skill.metadata),
        allowed_tools=skill.allowed_tools,
        files=files,
        **about,
    )


def _require_free(deps: Deps, name: str) -> None:
    """Raises Refusal: 422 for what is no name, 409 for a skill of the code."""
    if fault := name_fault(name):
        raise Refusal(422, "bad_skill", f"This is no skill: {fault}.", field="name")
    if name in deps.offer.skills():
        message = f"The skill {name} comes with the code of this deployment and is changed there."
        raise Refusal(409, "skill_bundled", message)


def _require_path(name: str, path: str) -> None:
    fault = name_fault(name) or path_fault(path)
    if fault:
        raise Refusal(422, "bad_path", f"There is no such file: {fault}.", field="path")


def _parsed(name: str, content: str) -> Skill:
    """Raises Refusal 422."""
    try:
        skill = Skill.parse(content)
    except ConfigError as error:
        _refuse(f"{error.setting}: {error.fault}")
    if skill.name != name:
        _refuse(f"its name is {skill.name!r}, and it is stored as {name!r}; both are the same")
    return skill


def _refuse(fault: str) -> NoReturn:
    raise Refusal(422, "bad_skill", f"This cannot be stored: {fault}.", field="content")
