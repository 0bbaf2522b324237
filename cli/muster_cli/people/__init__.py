"""What people say to requests that ask them."""
