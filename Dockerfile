# The image of the Action and of the server. The sandbox is another container, started through
# the engine's socket that the runner mounts here; the agent never runs in this one.
ARG BASE=python:3.12-slim-bookworm
FROM ${BASE}

RUN apt-get update \
 && apt-get install -y --no-install-recommends bash ca-certificates git python3-venv \
 && rm -rf /var/lib/apt/lists/*

ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /opt/resolver-src
COPY pyproject.toml README.md LICENSE ./
COPY prompts prompts
COPY resolver resolver
RUN python3 -m venv /opt/venv && /opt/venv/bin/pip install . && ln -s /opt/venv/bin/resolver /usr/local/bin/resolver

WORKDIR /
ENTRYPOINT ["/usr/local/bin/resolver"]
CMD ["action"]
