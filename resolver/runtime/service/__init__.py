"""HTTP(S) server of the remote runtime: it gives sandboxes to runs on other machines."""
