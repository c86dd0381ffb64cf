"""What a run is, without any I/O: events, messages, limits, keys, the journal and the ports. Imports the standard library only."""
