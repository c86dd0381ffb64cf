"""Models by their providers: a pure request builder, a pure accumulator and a thin transport each. Importing this
imports nothing else."""
