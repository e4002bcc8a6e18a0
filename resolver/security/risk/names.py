"""Names by which secrets are known, and the tags of where a command's output comes from."""

import re

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
"""Names of files that hold secrets more often than not."""

_SECRET_NAME = re.compile(
    r"(?:^|_)(?:TOKEN|SECRET|SECRETS|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|APIKEY|PAT)(?:$|_)"
    r"|(?:API|ACCESS|PRIVATE|SECRET|SIGNING|ENCRYPTION|AUTH)_?KEY",
    re.I,
)
SECRET_WORD = re.compile(
    r"token|secret|passw?|credential|api.?key|access.?key|private.?key|auth|[_|^\\b\s.-]key\b|^key$|\|key",
    re.I,
)
"""What one looks for in the environment to find secrets."""

USED = re.compile(r"\$\{([A-Za-z_]\w{0,200})\}")
"""A variable that the text itself has not set, as the expansion leaves it."""


def is_secret_name(name: str) -> bool:
    """Whether a variable of that name holds a secret."""
    return bool(_SECRET_NAME.search(name))
