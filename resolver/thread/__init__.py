"""What people say on a thread while runs wait and work, and what they are told there."""
