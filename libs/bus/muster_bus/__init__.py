"""How messages travel: the only package that knows NATS."""
