"""Runs a team's own functions in processes of their own, with limits, and ends each with all that it started."""
