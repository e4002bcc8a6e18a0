"""Models behind one Protocol: litellm, recorded replies, retries and cost."""
