"""How a request becomes a plan: made or given, linted, and routed to tags."""
