"""The Durable Object of the skills that were stored or learned: a shell."""

from edge_agent.cloudflare.skills import SkillsObject


class Skills(SkillsObject):
    """One for the deployment. Only runs of agents that use such skills ask it, once each and when they load one."""
