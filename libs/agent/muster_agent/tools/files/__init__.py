"""The files of a team: listed, read and written under one folder, and nowhere else."""
