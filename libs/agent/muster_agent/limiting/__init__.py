"""What keeps the calls of models within the limits of their providers, over all processes of a team."""
