"""HTTP(S) server of the remote runtime: provides sandboxes to runs on other machines."""
