"""The log over a small `Sql` callable: the same code on sqlite3 and on the SQLite of a Durable Object."""
