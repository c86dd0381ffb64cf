"""The Durable Object of one part of the directory of runs: a shell."""

from edge_agent.cloudflare.directory import DirectoryObject


class Directory(DirectoryObject):
    """Sixteen of them, named by number; a run's id decides which one knows it."""
