"""The two ways to run a role: as a plain function, or as a model with tools."""
