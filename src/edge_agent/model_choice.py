"""Which models a run asks in its stages: those of its request, of the deployment's variables, of the agent's code."""

from collections.abc import Callable, Sequence

from edge_agent.agent import Agent
from edge_agent.core.errors import ConfigError, Refusal
from edge_agent.core.events import RunCreated
from edge_agent.core.model import Model, TakesFiles
from edge_agent.loop.admission import require_taken
from edge_agent.models.naming import split_models
from edge_agent.models.taking import takes_of
from edge_agent.wire.http import ForkChanges, StageModels, StartRun
from edge_agent.wire.settings import Settings

Names = tuple[str, ...]
ModelResolver = Callable[[str, Settings], Model]


class ModelChoice:
    """`model` makes the model of a name; it raises ConfigError."""

    def __init__(self, settings: Settings, model: ModelResolver) -> None:
        self._settings, self._model = settings, model

    def of_agent(self, agent: Agent) -> Names:
        """The model its rounds ask, then its fallbacks in order. Raises ConfigError where nothing names one."""
        if agent.model is not None and not isinstance(agent.model, str):
            return tuple(_given(agent))
        models = self._settings.models or _named(agent, agent.model)
        if not models:
            fault = f"is not set, and the agent {agent.name} names no model"
            raise ConfigError("EDGE_AGENT_MODEL", fault, "EDGE_AGENT_MODEL=openai-compatible/some-model")
        return models

    def of_summaries(self, agent: Agent) -> Names:
        """The synthesizer's, as a run of this agent would have it. Raises ConfigError like `of_agent`."""
        return self._later(agent)[1] or self.of_agent(agent)

    def of_run(self, agent: Agent, request: StartRun) -> tuple[Names, Names, Names]:
        """The executor's, the planner's and the synthesizer's; the latter two empty where they are the executor's.

        Raises Refusal (422) for a model of the request that cannot be had, ConfigError for another one."""
        executor, planner, synthesizer = _wanted(agent, request.model, request.models)
        own = (self.of_agent(agent) if executor is None else (), *self._later(agent))
        asked = (executor, planner, synthesizer)
        for name, models in zip(asked, own, strict=True):
            self._resolvable(agent, (name,) if name else models, asked=name is not None)
        first, second, third = ((name,) if name else models for name, models in zip(asked, own, strict=True))
        return first, second, third

    def of_fork(self, agent: Agent, changes: ForkChanges) -> dict[str, Names]:
        """What changes, by the field of run.created. Raises Refusal (422)."""
        fields = ("models", "planner_models", "synthesizer_models")
        asked = dict(zip(fields, _wanted(agent, changes.model, changes.models), strict=True))
        changed = {field: (name,) for field, name in asked.items() if name}
        for models in changed.values():
            self._resolvable(agent, models, asked=True)
        return changed

    def require_taken(self, created: RunCreated, team: Sequence[Agent]) -> None:
        """Refuses (422) images and files that a model of the run's stages does not take, or one of the agents that the
        run may be handed to."""
        own = (*created.models, *created.planner_models, *created.synthesizer_models)
        others = (agent for agent in team if agent.name != created.agent_name and agent.model)
        shown = (*own, *(name for agent in others for name in self.of_agent(agent)))
        given = _given(*team)

        def takes(name: str) -> Sequence[str]:
            model = given.get(name)
            return model.takes if isinstance(model, TakesFiles) else takes_of(name, self._settings)

        require_taken(created, shown, takes)

    def check(self, agent: Agent) -> None:
        """Raises ConfigError where a run of this agent could not be started."""
        for models in (self.of_agent(agent), *self._later(agent)):
            self._resolvable(agent, models, asked=False)

    def model_by(self, *agents: Agent) -> Callable[[str], Model]:
        """By name, but for models that an agent was given as they are."""
        given = _given(*agents)
        return lambda name: given[name] if name in given else self._model(name, self._settings)

    def _later(self, agent: Agent) -> tuple[Names, Names]:
        return (
            self._settings.planner_models or _named(agent, agent.planner_model),
            self._settings.synthesizer_models or _named(agent, agent.synthesizer_model),
        )

    def _resolvable(self, agent: Agent, models: Sequence[str], *, asked: bool) -> None:
        given = _given(agent)
        for name in models:
            if name in given:
                continue
            try:
                self._model(name, self._settings)
            except ConfigError as error:
                if asked:
                    raise Refusal(422, "unknown_model", str(error), field="model") from error
                raise


def _wanted(agent: Agent, model: str | None, stages: StageModels | None) -> tuple[str | None, ...]:
    """Of the executor, the planner and the synthesizer."""
    stages = stages or StageModels()
    asked = (stages.executor or model, stages.planner or model, stages.synthesizer or model)
    return tuple(name and agent.aliases.get(name, name) for name in asked)


def _named(agent: Agent, text: str | None) -> Names:
    return tuple(agent.aliases.get(name, name) for name in split_models(text or ""))


def _given(*agents: Agent) -> dict[str, Model]:
    """By name, the models that agents have as they are, and not by name."""
    models = [agent.model for agent in agents if agent.model is not None and not isinstance(agent.model, str)]
    return {f"{model.provider}/{model.name}": model for model in models}
