"""OpenAI-compatible chat completions: OpenAI, gateways, vLLM, llama-server, Ollama and the many others.

request.py and json_tools.py ask, answer.py and json_answer.py listen, both without I/O; model.py connects them to a
transport."""

from edge_agent.models.openai_chat.model import OpenAIChat

__all__ = ["OpenAIChat"]
