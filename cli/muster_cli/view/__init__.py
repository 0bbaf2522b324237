"""What a person sees: the board of a request, tables, explanations."""
