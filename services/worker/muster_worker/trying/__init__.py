"""A role alone, without a broker."""
