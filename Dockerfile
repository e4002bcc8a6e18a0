# The image of the Action and of the server. The sandbox is another container, started through
# the engine's socket that the runner mounts here; the agent never runs in this one.
# A release is built on the digest that this name has then, and records it (scripts/release.sh).
ARG BASE=python:3.12-slim-bookworm
FROM ${BASE} AS base

# The sandbox's bash and git are copies of this image's.
RUN command -v git >/dev/null \
 || { apt-get update && apt-get install -y --no-install-recommends git && rm -rf /var/lib/apt/lists/*; }

# What Resolver needs, without itself, so that a change of its code keeps this layer. Bytecode is
# made only of what is imported: compiling everything takes longer and adds 130 MB. The pages of the
# proxy that is a part of litellm are left out.
FROM base AS dependencies
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
COPY requirements/run.txt requirements/
RUN python3 -m venv --without-pip /opt/venv \
 && python3 -m pip --python /opt/venv/bin/python install -q --no-compile \
    --require-hashes --only-binary :all: -r requirements/run.txt \
 && rm -r /opt/venv/lib/python3*/site-packages/litellm/proxy/_experimental/out \
 && LITELLM_LOCAL_MODEL_COST_MAP=True /opt/venv/bin/python -c 'import docker, git, github, litellm'

# Resolver's own files below /install, as they go into the image. What builds them stays behind.
FROM dependencies AS build
COPY requirements/build.txt requirements/
RUN python3 -m venv --without-pip /opt/build \
 && python3 -m pip --python /opt/build/bin/python install -q --no-compile \
    --require-hashes --only-binary :all: -r requirements/build.txt
COPY hatch_build.py pyproject.toml README.md LICENSE ./
COPY prompts prompts
COPY suite suite
COPY resolver resolver
ARG SOURCE_COMMIT=
RUN /opt/build/bin/python -m hatchling build -t wheel -d /wheels \
 && python3 -m pip --python /opt/venv/bin/python install -q --no-deps --no-index \
    --root /install /wheels/*.whl

FROM base
COPY --from=dependencies /opt/venv /opt/venv
COPY --from=build /install /

# A server need not be root (docs/how-to/server.md). GitHub runs actions as the image's default user, which
# has to be root there: the workspace and the engine's socket belong to it.
# The toolbox belongs to this image, not to HOME, which the runner sets anew for each job.
ENV PYTHONUNBUFFERED=1 XDG_CACHE_HOME=/var/cache
RUN useradd --system --home-dir /var/lib/resolver --shell /usr/sbin/nologin resolver \
 && install -d -o resolver -g resolver -m 700 /var/lib/resolver /var/lib/resolver-runs \
 && ln -s /opt/venv/bin/resolver /usr/local/bin/resolver \
 && /opt/venv/bin/python -c 'import litellm, resolver.cli.action, resolver.cli.serve' \
 && /opt/venv/bin/python -c 'from pathlib import Path; from resolver.runtime.toolbox import Toolbox; Toolbox(Path("/var/cache/resolver")).archive()' \
 && chown -R resolver: /var/cache/resolver

ENTRYPOINT ["/usr/local/bin/resolver"]
CMD ["action"]
