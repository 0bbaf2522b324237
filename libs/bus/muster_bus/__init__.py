"""How it is said: the only place that knows NATS."""
