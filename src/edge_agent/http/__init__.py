"""The HTTP API: who may call, what may be asked, and the problem where it cannot be answered. Knows no platform."""
