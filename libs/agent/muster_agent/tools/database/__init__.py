"""Read-only SQL over what a team has: CSV and Parquet files, and SQLite databases."""
