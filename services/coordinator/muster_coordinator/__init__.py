"""Watches an installation: the overview, work done twice, and the HTTP API."""
