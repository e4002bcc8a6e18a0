"""Makes tasks in Harbor's format of a repository's own fixes, on which Harbor runs Resolver."""
