"""How a delivered request is taken: what becomes of it, what is kept, what is noted, who gives signs of life."""
