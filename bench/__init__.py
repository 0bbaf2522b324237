"""Muster measured beside plain nats-py that does the least a durable task needs: `make bench`."""
