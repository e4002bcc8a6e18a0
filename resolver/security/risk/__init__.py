"""Rules that rate how risky an action of the agent is: shell, Python, files, web pages. No model is
involved."""
