"""What is known about a change, and how it is known."""
