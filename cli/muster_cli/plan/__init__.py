"""`muster plan`: a plan that is shown, not run."""
