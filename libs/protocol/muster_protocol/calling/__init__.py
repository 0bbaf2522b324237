"""Where an answer may be called back to, how that is signed, and when it is tried again. Pure."""
