"""How risky an action of the agent is, by rules: shell, Python, files, pages. No model is asked."""
