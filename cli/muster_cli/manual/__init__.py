"""What the command line says about itself: help, and completion for shells."""
