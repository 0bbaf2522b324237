"""Traces: one tree of spans for each request, whoever works on it, exported by OTLP where an endpoint is set."""
