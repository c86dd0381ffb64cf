"""A strict model server of chat completions, over the lenient one of model_server.py.

    python -m tests.servers.openai_server --port 8099 [--script FILE.json]

Each request has to keep the rules of the API (tests/wire/openai_rules.py) as DeepSeek knows them, or is refused with
the words of the first it breaks: reasoning comes back, and has to be some that was said here. An answer of a script may
hold `json`: where a form is asked for, that is given.
"""

import json
from collections.abc import Iterator

from tests.servers.model_server import ModelServer
from tests.servers.scenarios import Json, Seen
from tests.servers.scripted_server import run
from tests.wire.openai_rules import Refused, check

PER_MESSAGE, CACHED = 10, 4  # tokens of a message of the prompt, and of those how many a cache holds in later turns


class OpenAIServer(ModelServer):
    def failure(self, seen: Seen, name: str, numbers: list[int]) -> tuple[int, bytes, dict[str, str]] | None:
        try:
            check(seen.body, "deepseek")
            self._check_thoughts(seen)
        except Refused as fault:
            return 400, self.error(400, str(fault), "invalid_request_error"), {}
        return super().failure(seen, name, numbers)

    def scripted(self, seen: Seen, answer: Json) -> Iterator[str]:
        formed = "json" in answer and "response_format" in seen.body
        return super().scripted(seen, {**answer, "text": json.dumps(answer["json"])} if formed else answer)

    def usage(self, seen: Seen, tokens: int, thoughts: int = 0) -> Json:
        """Thoughts are part of what was said."""
        prompt = PER_MESSAGE * seen.messages
        return {
            "prompt_tokens": prompt,
            "completion_tokens": tokens + thoughts,
            "total_tokens": prompt + tokens + thoughts,
            "prompt_cache_hit_tokens": CACHED * seen.turn,
            "prompt_cache_miss_tokens": prompt - CACHED * seen.turn,
            "completion_tokens_details": {"reasoning_tokens": thoughts},
        }

    def _check_thoughts(self, seen: Seen) -> None:
        told = [message["reasoning_content"] for message in seen.body["messages"] if "reasoning_content" in message]
        own = json.dumps(self.script.get(seen.scenario, []), ensure_ascii=False)
        for thought in told:
            if f'"reasoning": {json.dumps(thought, ensure_ascii=False)}' not in own:
                raise Refused(f"reasoning that was not said here: {thought}")


if __name__ == "__main__":
    run(OpenAIServer)
