"""The work on one task that a model is paid for: what is stored of it adds up here."""
