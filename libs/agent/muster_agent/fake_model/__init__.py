"""A local server that answers as providers of models do, and refuses what they refuse: for tests and trials."""
