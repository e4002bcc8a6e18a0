"""Classifies paths: inside the repository, git's own directory, a credential, a file that is
executed at the next login, the system. No file system is accessed.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase
from posixpath import normpath

MAX_PATH_CHARACTERS = 4_096
"""Maximum characters of a path that are looked at."""

_MAX_PARTS = 40


class PathPlace(Enum):
    """Classes of paths. The values are used in messages."""

    ROOT = "the whole file system"
    ABOVE = "the folder that the repository is in"
    REPOSITORY = "the whole repository"
    GIT = "git's own folder"
    INSIDE = "the repository"
    TEMPORARY = "temporary files"
    CACHE = "a cache or an installed tool"
    HOME = "the whole home folder"
    IN_HOME = "the home folder"
    SYSTEM_TOP = "a folder of the system"
    SYSTEM = "the system"
    DEVICE = "a device"
    OTHER = "outside of the repository"


_CREDENTIALS = tuple(
    tuple(path.split("/"))
    for path in (
        ".ssh/id_*", ".ssh/*_rsa", ".ssh/*_ed25519", ".ssh/*.pem", ".aws/credentials",
        ".git-credentials", ".netrc", ".docker/config.json", ".kube/config", ".npmrc", ".pypirc",
        ".config/gh/hosts.yml", ".config/hub", ".config/git/credentials", ".gnupg/*",
        ".config/gcloud/*", ".azure/*", ".mozilla/firefox/*", ".config/google-chrome/*",
        ".config/chromium/*", ".config/BraveSoftware/*", ".local/share/keyrings/*",
        ".bash_history", ".zsh_history", ".python_history", ".psql_history", ".pgpass", ".my.cnf",
        ".password-store/*", ".cargo/credentials*", ".gem/credentials", ".vault-token",
        ".terraform.d/credentials*", ".config/op/*", "Library/Keychains/*", ".claude.json",
        ".codex/auth.json", ".config/solana/id.json",
    )
)  # fmt: skip
_CREDENTIAL_FOLDERS = frozenset(
    {".ssh", ".aws", ".gnupg", ".kube", ".azure", ".mozilla", ".password-store"}
    | {".config/gcloud", ".config/gh", ".config/google-chrome", ".config/chromium"}
    | {".docker", ".local/share/keyrings"}
)
"""Directories, below the home directory, that contain credentials."""

_SYSTEM_CREDENTIAL = re.compile(
    r"/etc/(?:shadow|gshadow|sudoers)\b|/etc/ssh/ssh_host_|/etc/krb5\.keytab"
    r"|(?:/var)?/run/secrets/|/proc/[^/]{1,40}/(?:environ|mem|root/)|/proc/[^/]{1,40}/task/.*environ"
    r"|/proc/kcore|/dev/(?:k?mem|port)$"
)
_EXECUTED_LATER = re.compile(
    r"~/\.(?:bashrc|bash_profile|bash_login|bash_logout|profile|zshrc|zprofile|zshenv|zlogin"
    r"|inputrc|xprofile|xinitrc|pam_environment)$"
    r"|~/\.ssh/(?:authorized_keys2?|rc|config)$|~/\.config/(?:systemd/|autostart/|fish/config\.fish)"
    r"|~/\.local/share/systemd/"
    r"|/etc/(?:cron|anacrontab|profile|bash\.bashrc|environment|rc\.local|init\.d/|systemd/|sudoers"
    r"|ld\.so\.preload|ld\.so\.conf|pam\.d/|passwd$|group$|shadow$|udev/rules|xdg/autostart|zsh)"
    r"|/var/spool/(?:cron|at)|/(?:usr/)?lib/systemd/|/etc/ssh/"
)
"""Files that are executed, or that configure what is executed, without anyone asking for it."""

_ESCAPE_PATHS = re.compile(
    r"(?:/var)?/run/(?:docker|containerd/containerd|crio/crio|podman/podman)\.sock"
    r"|/proc/(?:1|\$\{?PPID\}?)/(?:root|cwd|ns)\b"
)
"""Sockets of container engines, and entries of process 1: they lead out of a container."""

_KERNEL_FILES = re.compile(r"/proc/sys(?:rq-trigger|/)|/sys/(?!class/net)|/proc/\d+/(?:oom|attr)")
"""Files whose change affects the kernel or another process."""

_DEVICE = re.compile(
    r"/dev/(?:sd[a-z]|nvme\d|vd[a-z]|xvd[a-z]|hd[a-z]|mmcblk|disk|mapper/|dm-|md\d|loop\d|ram\d)"
)
_TEMPORARY = re.compile(
    r"/(?:private/)?(?:tmp|var/tmp)(?:/|$)|/dev/shm(?:/|$)|\$\{?(?:TMP|TMPDIR|TEMP|RUNNER_TEMP)\b"
)
_HARMLESS_DEVICE = re.compile(
    r"/dev/(?:null|std(?:in|out|err)|tty\w*|fd/\d+|u?random|zero|full|ptmx|pts/\d+)$"
)
_CACHE = re.compile(
    r"~/(?:\.cache|\.local|\.npm|\.nvm|\.cargo|\.rustup|\.gem|\.m2|\.gradle|\.pyenv|\.rbenv|\.venv"
    r"|\.virtualenvs|\.yarn|\.pnpm\w*|\.bun|\.deno|\.dotnet|\.nuget|\.ccache|\.conda|go"
    r"|\.cpan\w*|\.stack|\.opam|\.bundle|\.composer|\.ivy2|\.sbt|\.hex|\.mix|\.julia|\.jupyter"
    r"|\.ipython|\.vscode\w*|\.terraform\.d/plugin-cache)(?:/|$)"
)
_HOME = re.compile(r"/(?:root|home/[^/]+|Users/[^/]+|var/root)(?=/|$)")
_SYSTEM_TOPS = frozenset(
    [
        *("/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib32", "/lib64", "/media", "/mnt"),
        *("/opt", "/proc", "/root", "/run", "/sbin", "/srv", "/sys", "/usr", "/var", "/usr/bin"),
        *("/usr/lib", "/usr/sbin", "/usr/local", "/usr/share", "/usr/include", "/var/lib"),
        *("/var/log", "/usr/local/bin", "/usr/local/lib", "/Users", "/System", "/Library"),
    ]
)
_SYSTEM = re.compile(r"/(?:bin|boot|dev|etc|lib\d*|proc|run|sbin|sys|usr|var|System|Library)/")


@dataclass(frozen=True)
class Paths:
    """Interprets paths relative to a directory.

    root: the repository's directory in the sandbox.
    cwd: the shell's current directory.
    """

    root: str = "/workspace"
    cwd: str = "/workspace"

    def change_folder(self, folder: str) -> "Paths":
        """Return the same after a `cd`. If its target is not known, the directory stays."""
        if not folder or folder == "-" or "$" in folder:
            return self
        return Paths(self.root, self.absolute(folder))

    def absolute(self, path: str) -> str:
        """Return the absolute, normalized path. A path below the home directory begins with `~`."""
        path = path[:MAX_PATH_CHARACTERS]
        if path.startswith(("$HOME", "${HOME}")):
            path = "~" + path.partition("HOME")[2].removeprefix("}")
        if path.startswith(("$PWD", "${PWD}")):
            path = "." + path.partition("PWD")[2].removeprefix("}")
        if path == "~" or path.startswith("~/"):
            return "~" if normpath(path) == "~" else normpath(path)
        if path.startswith("$"):
            return path
        absolute = normpath(path if path.startswith("/") else f"{self.cwd}/{path}")
        absolute = "/" + absolute.lstrip("/") if absolute.startswith("/") else absolute
        # `normpath` also resolves detours that would hide the rest: /proc/self/../self/environ
        if absolute == self.root or absolute.startswith(self.root.rstrip("/") + "/"):
            return absolute
        return _HOME.sub("~", absolute, count=1)

    def place(self, path: str) -> PathPlace:
        """Return the class of the path."""
        absolute = self.absolute(path).removesuffix("/*").removesuffix("/.*") or "/"
        root = self.root.rstrip("/") or "/"
        if absolute in {"/", "/*"}:
            return PathPlace.ROOT
        if absolute == root:
            return PathPlace.REPOSITORY
        if f"{root}/".startswith(f"{absolute.rstrip('/')}/"):
            return PathPlace.ABOVE
        if absolute.startswith(f"{root}/"):
            path_in_root = absolute[len(root) + 1 :]
            is_git = path_in_root == ".git" or (
                path_in_root.startswith(".git/") and path_in_root.count("/") == 1
            )
            return PathPlace.GIT if is_git else PathPlace.INSIDE
        if absolute == "~":
            return PathPlace.HOME
        if _HARMLESS_DEVICE.match(absolute) or _TEMPORARY.match(absolute):
            return PathPlace.TEMPORARY
        return self._place_elsewhere(absolute)

    @staticmethod
    def _place_elsewhere(absolute: str) -> PathPlace:
        if _CACHE.match(absolute):
            return PathPlace.CACHE
        if absolute.startswith("~/"):
            return PathPlace.IN_HOME
        if absolute in _SYSTEM_TOPS:
            return PathPlace.SYSTEM_TOP
        if _DEVICE.match(absolute):
            return PathPlace.DEVICE
        if _SYSTEM.match(absolute):
            return PathPlace.SYSTEM
        if absolute.startswith(("$", "~")):
            return PathPlace.TEMPORARY  # the value of a variable: no reason for suspicion
        return PathPlace.OTHER

    def is_credential(self, path: str) -> bool:
        """Return True if the path is where a credential is stored, or a pattern for such a path."""
        absolute = self.absolute(path)
        if _SYSTEM_CREDENTIAL.match(absolute) or _SYSTEM_CREDENTIAL.match(path):
            return True
        if any(character in absolute for character in "*?[") and _matches_known(
            absolute.split("/")[1:4], ("etc", "shadow")
        ):
            return absolute.count("/") == 2
        if not absolute.startswith("~/"):
            return False
        parts = absolute[2:].split("/")[:_MAX_PARTS]
        return any(_matches_known(parts, known) for known in _CREDENTIALS)

    def is_credential_folder(self, path: str) -> bool:
        """Return True if the path is a directory of credentials."""
        absolute = self.absolute(path).removesuffix("/*")
        return absolute.startswith("~/") and absolute[2:] in _CREDENTIAL_FOLDERS

    def is_run_later(self, path: str) -> bool:
        """Return True if a file at the path is executed without anyone asking for it: at a login,
        by a timer, by git."""
        absolute = self.absolute(path)
        return bool(_EXECUTED_LATER.match(absolute)) or self.is_hook(path)

    def is_hook(self, path: str) -> bool:
        """Return True if the path is one of git's hooks or the repository's git configuration."""
        absolute = self.absolute(path)
        return "/.git/hooks/" in absolute or absolute.endswith(("/.git/hooks", "/.git/config"))

    def is_escape(self, path: str) -> bool:
        """Return True if the path leads out of a container."""
        return bool(_ESCAPE_PATHS.match(path) or _ESCAPE_PATHS.match(self.absolute(path)))

    def is_kernel(self, path: str) -> bool:
        """Return True if writing to the path changes the running machine rather than a file."""
        absolute = self.absolute(path)
        return bool(_KERNEL_FILES.match(absolute)) or absolute.endswith(
            ("/release_agent", "/notify_on_release")
        )


def is_device(path: str) -> bool:
    """Return True if the path is a disk or another block device."""
    return bool(_DEVICE.match(path))


def _matches_known(parts: list[str], known: Iterable[str]) -> bool:
    """Return True if a path matches a known one from its beginning. Both may contain wildcards."""
    known = tuple(known)
    if len(parts) < len(known):
        return False
    exact_count = 0
    for part, known_part in zip(parts, known, strict=False):
        if (
            part == known_part
            or (known_part != "*" and fnmatchcase(part, known_part))
            or (known_part == "*" and part)
        ):
            exact_count += 1
        elif not _may_match(part, known_part):
            return False
    return exact_count > 0 or any(
        character.isalnum() for part in parts[: len(known)] for character in part
    )


def _may_match(part: str, known_part: str) -> bool:
    """Return True if a shell pattern may match the name. `*` does not match a hidden file."""
    if not any(character in part for character in "*?["):
        return False
    if known_part.startswith(".") and not part.startswith("."):
        return False
    if known_part.endswith("*"):
        stem, pattern = (
            known_part.rstrip("*"),
            part.split("*", 1)[0].split("?", 1)[0].split("[", 1)[0],
        )
        return stem.startswith(pattern) or pattern.startswith(stem)
    return len(part) <= 64 and part.count("*") <= 4 and fnmatchcase(known_part, part)
