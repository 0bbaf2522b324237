"""The team file: its schema, and reading it."""
