"""The Durable Object of one run: a shell. What it works with is named in wiring.py."""

from durable_objects.wiring import console_of, deployment_of, post_of, runs_of
from edge_agent.cloudflare.run_object import RunObject


class Run(RunObject):
    wiring = staticmethod(deployment_of)
    post = staticmethod(post_of)
    runs = staticmethod(runs_of)
    console = staticmethod(console_of)
