"""Pages of the web, and searches of it: fetched within limits, from hosts that the team names."""
