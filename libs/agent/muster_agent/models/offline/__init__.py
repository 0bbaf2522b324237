"""The offline model: plans and works by rules, without a network."""
