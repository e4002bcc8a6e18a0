"""The bundled demo: a small repository with a real bug, an issue, and a recorded model run."""
