"""The database: SQLite by default, PostgreSQL by its address. SQL itself lives in repositories."""
