"""Requests under random faults, and a checker that believes only the streams and the client's own list."""
