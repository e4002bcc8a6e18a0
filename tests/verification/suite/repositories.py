"""All repositories of the suite."""

from tests.verification.suite.compiled_repositories import COMPILED
from tests.verification.suite.python_repositories import PYTHON
from tests.verification.suite.repository import SuiteRepository
from tests.verification.suite.script_repositories import SCRIPTS

REPOSITORIES: tuple[SuiteRepository, ...] = (*PYTHON, *SCRIPTS, *COMPILED)
