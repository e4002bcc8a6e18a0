"""As much of Harbor's interface for installed agents as Resolver's adapter uses.

Harbor itself needs Python 3.12; Resolver runs on older ones, too.

Source: https://www.harborframework.com/docs/agents
"""
