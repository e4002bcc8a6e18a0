"""All fuzz targets. Importing this module registers them."""

from tests.fuzz import file_targets, github_targets, model_targets, sandbox_targets
from tests.fuzz.target import TARGETS

__all__ = ["TARGETS", "close_resources"]

MODULES = (github_targets, model_targets, file_targets, sandbox_targets)


def close_resources() -> None:
    """Close what some targets keep open between two inputs."""
    model_targets.close_endpoint()
    file_targets.remove_bundle_scenario()
