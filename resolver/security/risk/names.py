"""Names by which secrets are recognized, and tags for the origin of a command's output."""

import re

# Tags of a `Flow`: its data was downloaded, is the environment, is a file's content, is a secret,
# was encoded (for example by base64), was decoded, or identifies the machine or its user.
FETCHED = "fetched"
ENVIRONMENT = "environment"
FILE = "file"
SECRET = "secret"  # noqa: S105 - the tag of one
ENCODED = "encoded"
DECODED = "decoded"
IDENTITY = "identity"

SECRET_FILE = re.compile(
    r"^\.env(?:\.(?!example$|sample$|template$|dist$|test$|defaults?$)[\w.]{1,40})?$"
    r"|(?:^|[._-])secrets?\.(?:ya?ml|json|txt|env|toml)$|^id_(?:rsa|dsa|ecdsa|ed25519)$"
)
"""Names of files that usually contain secrets."""

_SECRET_NAME = re.compile(
    r"(?:^|_)(?:TOKEN|SECRET|SECRETS|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|APIKEY|PAT)(?:$|_)"
    r"|(?:API|ACCESS|PRIVATE|SECRET|SIGNING|ENCRYPTION|AUTH)_?KEY",
    re.I,
)
SECRET_WORD = re.compile(
    r"token|secret|passw?|credential|api.?key|access.?key|private.?key|auth|[_|^\\b\s.-]key\b|^key$|\|key",
    re.I,
)
"""Words that a command which searches the environment for secrets would look for."""

USED = re.compile(r"\$\{([A-Za-z_]\w{0,200})\}")
"""A variable that the analyzed text itself has not set, in the form that expansion leaves it in."""


def is_secret_name(name: str) -> bool:
    """Return True if a variable with that name is assumed to hold a secret."""
    return bool(_SECRET_NAME.search(name))
