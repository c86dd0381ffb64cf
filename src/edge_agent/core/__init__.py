"""What a run is, without any I/O: events, messages, limits, keys, the journal, the ports. Standard library only."""
