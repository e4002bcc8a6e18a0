"""Comments, pull requests and reviews: what Resolver writes to GitHub."""
