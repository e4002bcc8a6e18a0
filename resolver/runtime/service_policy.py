"""The services that declared checks need, and which of them the operator allows.

The repository chooses among the images that the operator allows and sets variables; nothing of the
host is mounted, and no secret is given to a service.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from resolver.config.image_reference import ImagePattern, parse_registry_reference
from resolver.config.templates import render
from resolver.errors import UsageError
from resolver.models.verification import CheckService, OmittedCheck, ProjectCheck

ServiceObstacle = Literal["not_allowed", "runtime", "image"]
"""Why a service can't run alongside the sandbox: the operator doesn't allow its image, the runtime
can't start services, or its image is none of a registry."""


@dataclass(frozen=True)
class ServicePolicy:
    """The services that the operator allows.

    images: patterns of their images. is_supported: False if the runtime can't start services.
    """

    images: tuple[str, ...] = ()
    is_supported: bool = True

    def decide(self, service: CheckService) -> CheckService | ServiceObstacle:
        """Return the service with the complete reference of its image, or why it can't run."""
        try:
            reference = parse_registry_reference(service.image, f"the service {service.name}")
        except UsageError:
            return "image"
        if not any(ImagePattern.parse(pattern).matches(reference) for pattern in self.images):
            return "not_allowed"
        if not self.is_supported:
            return "runtime"
        return service.model_copy(update={"image": reference})


NO_SERVICES = ServicePolicy()


def allow_services(
    checks: Sequence[ProjectCheck], policy: ServicePolicy
) -> tuple[tuple[ProjectCheck, ...], tuple[OmittedCheck, ...]]:
    """Return the checks whose services may run, with the images' complete names, and the others."""
    executable: list[ProjectCheck] = []
    omitted: list[OmittedCheck] = []
    for check in checks:
        decided = [policy.decide(service) for service in check.services]
        allowed = tuple(found for found in decided if isinstance(found, CheckService))
        if len(allowed) == len(decided):
            executable.append(check.model_copy(update={"services": allowed}))
            continue
        refused = [
            (service.name, service.image, found)
            for service, found in zip(check.services, decided, strict=True)
            if not isinstance(found, CheckService)
        ]
        reason = render("verification/omitted_check.txt.j2", check=check.name, refused=refused)
        omitted.append(OmittedCheck(name=check.name, command=check.command, reason=reason.strip()))
    return tuple(executable), tuple(omitted)
