"""GitHub behind the Forge protocol: access.py says where and as whom, forge.py acts."""
