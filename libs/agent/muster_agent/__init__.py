"""What a role and a supervisor work with: team files, models, tools, and the loop between model and tools."""
