"""HTTP to exactly the addresses that were checked: for callbacks, pages and searches."""
