"""The guard of a repository's runs: the ledger where every run sees it, and its dashboard."""
