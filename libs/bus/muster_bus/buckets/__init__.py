"""Small values under keys, with compare-and-set: the registry of workers, and conflicts."""
