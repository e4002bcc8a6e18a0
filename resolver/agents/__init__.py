"""The agents, and the two dialects in which a model calls tools: native tool calls and tags."""
