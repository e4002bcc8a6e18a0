"""The agents, and the protocol by which a model acts: native tool calls or tags."""
