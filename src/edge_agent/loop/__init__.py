"""The loop: ordinary async code over ports. Imports nothing but the core."""
