"""Text cleaning and escaping: what others wrote is cleaned, what Resolver quotes is escaped."""
