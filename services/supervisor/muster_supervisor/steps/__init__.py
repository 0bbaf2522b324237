"""The steps that `due` asks for, carried out: one step, one file."""
