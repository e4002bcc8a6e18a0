"""Whole runs whose checks use a real cache."""

import docker
import pytest

from resolver.events.lifecycle import CheckExecuted
from tests.parts.engine import wait_until_removed
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import CommandLine, bash, finish, make_checkout

SETTINGS = """\
checks:
  - name: unit
    command: python3 -m unittest
    services:
      cache:
        image: resolver-test/redis:7
        command: [redis-server, --save, "", --maxmemory, 32mb]
        ports: [6379]
"""
CACHE_CODE = """\
import subprocess


def ask(*words):
    command = ["redis-cli", "-e", "-h", "cache", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def total(prices):
    assert ask("CONFIG", "GET", "maxmemory")[1] == str(32 * 1024 * 1024)
    ask("DEL", "total")
    ask("RPUSH", "total", *prices)
    return {}(map(int, ask("LRANGE", "total", 0, -1)))
"""
TEST = """\
import unittest
import shop


class ShopTest(unittest.TestCase):
    def test_one(self):
        self.assertEqual(shop.total([3]), 3)
"""
ADD_TEST = """cat >> test_shop.py <<'END'

    def test_two(self):
        self.assertEqual(shop.total([3, 4]), 7)
END"""
CACHE = {".github/resolver.yml": SETTINGS, "shop.py": CACHE_CODE.format("max")}


@pytest.mark.engine
def test_a_check_with_a_service_is_verified(
    command_line: CommandLine,
    model_endpoint: ModelEndpoint,
    engine: docker.DockerClient,
    service_images: tuple[str, str],
) -> None:
    """Whole runs, because what the repository declares has to reach the containers of its checks,
    and its values the code under test."""
    checkout = make_checkout(command_line.folder / "shop", {**CACHE, "test_shop.py": TEST})
    fix = f"sed -i 's/max(/sum(/; s/return max/return sum/' shop.py; {ADD_TEST}"
    model_endpoint.script(bash(fix), finish("Add all prices"))
    done = command_line.call_resolve(
        checkout, "--runtime", "docker", "--image", service_images[1],
        RESOLVER_VERIFY="true", RESOLVER_SERVICE_IMAGES="resolver-test/*",
    )  # fmt: skip
    assert done.exit_code == 0, done.stdout + done.stderr
    evidence = done.outcome["evidence"]
    outputs = [e.execution.output for e in done.events if isinstance(e, CheckExecuted)]
    assert evidence["verdict"] == "verified", "\n".join(outputs)
    assert evidence["reproduction"] == ["test_shop.ShopTest.test_two"]
    [check] = evidence["checks"]
    assert (check["base"]["passed"], check["head"]["passed"]) == (1, 2)
    wait_until_removed(engine, f"{done.outcome['run']}-head")
