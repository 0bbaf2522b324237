"""Who thinks: team files, the model port and its three models, the tools and the loop between them."""
