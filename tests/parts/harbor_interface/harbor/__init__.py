"""As much of Harbor's interface for installed agents as Resolver's adapter uses.

Harbor itself needs Python 3.12. `scripts/harbor_check.py` runs the adapter in the real one.

Source: https://www.harborframework.com/docs/agents
"""
