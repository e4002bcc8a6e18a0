"""Starts the action server, from any folder that this package was copied to:

    python -I FOLDER/__main__.py --root DIR --scratch DIR --bash FILE --git FILE [more]

`--help` lists all options. `-I` keeps the environment variables of Python and the working directory
out of its imports. The server starts this same file with `--kernel` for the IPython session.
"""

import argparse
import importlib
import importlib.util
import os
import sys
import types
from typing import Any

PACKAGE = "resolver.sandbox"


def load(module: str) -> Any:
    """Return a module of this folder as a member of `resolver.sandbox`, installed or copied."""
    # The modules here import each other relatively, and the folder may have any name. The package
    # is therefore registered in sys.modules by hand, under an empty parent package, which keeps
    # `import resolver.sandbox.wire` independent of sys.path.
    if PACKAGE not in sys.modules:
        folder = os.path.dirname(os.path.abspath(__file__))
        parent = types.ModuleType(PACKAGE.partition(".")[0])
        parent.__path__ = []
        spec = importlib.util.spec_from_file_location(
            PACKAGE, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
        )
        assert spec and spec.loader
        package = importlib.util.module_from_spec(spec)
        sys.modules.setdefault(parent.__name__, parent)
        sys.modules[PACKAGE] = package
        spec.loader.exec_module(package)
    return importlib.import_module(f"{PACKAGE}.{module}")


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="action server", description="Acts for the agent: JSON-RPC on stdin and stdout."
    )
    parser.add_argument("--root", required=True, help="the repository; shells start here")
    parser.add_argument("--scratch", required=True, help="folder for outputs and bundles")
    parser.add_argument("--bash", required=True, help="the bash to run")
    parser.add_argument("--git", required=True, help="the git to export changes with")
    parser.add_argument("--python", default=sys.executable, help="Python that has IPython")
    parser.add_argument("--tools", help="folder to put after the image's PATH")
    parser.add_argument(
        "--keep-environment",
        action="store_true",
        help="pass this process's environment on (for a container, whose image defines it)",
    )
    parser.add_argument(
        "--variable", action="append", default=[], metavar="NAME=VALUE", help="for the shell"
    )
    parser.add_argument(
        "--proxy", action="store_true", help="listen on loopback as the HTTP proxy of all programs"
    )
    return parser.parse_args()


def _serve() -> None:
    """Run the action server, or exit with a message if the machine provides no pseudo-terminal."""
    options = _parse_options()
    try:
        load("shell").check_terminals()
    except OSError as error:
        sys.exit(
            f"the machine provides no pseudo-terminal, which the shell needs: {error}. Mount "
            "devpts at /dev/pts, with /dev/ptmx, or choose another runtime"
        )
    actions, processes = load("actions"), load("processes")
    variables = dict(item.partition("=")[::2] for item in options.variable)
    proxy = None
    if options.proxy:
        proxy = load("proxy").Proxy()
        inherited = os.environ if options.keep_environment else {}
        variables = load("proxy").proxy_variables(proxy.port, inherited) | variables
    paths = actions.SandboxPaths(
        root=os.path.abspath(options.root),
        scratch=os.path.abspath(options.scratch),
        bash=options.bash,
        git=options.git,
        python=options.python,
        tools=options.tools,
        keep_environment=options.keep_environment,
        variables=variables,
        proxy=proxy.port if proxy else 0,
    )
    kernel_scratch = os.path.join(paths.scratch, "ipython")
    kernel = (options.python, "-I", os.path.abspath(__file__), "--kernel", kernel_scratch)
    # Before the first child is started: from here on, orphaned descendants are reparented to this
    # process, which has to reap them (see processes.py).
    processes.become_subreaper()
    family = processes.Family()
    family.reap_orphans()
    server = load("server")
    server.run_action_server(actions.Actions(paths, family, kernel), family, proxy)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--kernel"]:
        scratch, cells, control = sys.argv[2:]
        load("kernel").run_kernel(int(cells), int(control), scratch)
    else:
        _serve()
