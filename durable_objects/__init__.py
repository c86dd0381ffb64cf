"""The Durable Object classes of this deployment and what they are wired to."""
