"""What can be said about an answer without a model: contradictions, unsupported figures, sources, confidence. Pure."""
