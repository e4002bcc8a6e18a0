"""Models behind one protocol: litellm, recorded replies, retries, routing and cost."""
