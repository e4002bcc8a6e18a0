# The image of the Action and of the server. The sandbox is another container, started through
# the engine's socket that the runner mounts here; the agent never runs in this one.
ARG BASE=python:3.12-slim-bookworm
FROM ${BASE}

# The sandbox's bash and git are copies of this image's.
RUN command -v git >/dev/null \
 || { apt-get update && apt-get install -y --no-install-recommends git && rm -rf /var/lib/apt/lists/*; }

ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /opt/resolver-src

# What Resolver needs, without itself, so that a change of its code keeps this layer. Bytecode is
# made only of what a run imports: compiling everything takes longer and adds 130 MB.
COPY pyproject.toml ./
RUN python3 -m venv --without-pip /opt/venv \
 && python3 -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"], sep="\n")' > requirements.txt \
 && python3 -m pip --python /opt/venv/bin/python install -q --no-compile -r requirements.txt \
 && LITELLM_LOCAL_MODEL_COST_MAP=True /opt/venv/bin/python -c 'import docker, git, github, litellm'

COPY README.md LICENSE ./
COPY prompts prompts
COPY resolver resolver
RUN python3 -m pip --python /opt/venv/bin/python install -q --no-deps . \
 && cd / \
 && /opt/venv/bin/python -c 'import resolver.cli.action; from resolver.llm.base import ModelConfig; from resolver.llm.library import rehearse; rehearse(ModelConfig(model="gpt-4o"))' \
 && ln -s /opt/venv/bin/resolver /usr/local/bin/resolver

# The toolbox belongs to this image, not to HOME, which the runner sets anew for each job.
ENV XDG_CACHE_HOME=/var/cache
WORKDIR /
RUN /opt/venv/bin/python -c 'from pathlib import Path; from resolver.runtime.toolbox import Toolbox; Toolbox(Path("/var/cache/resolver")).archive()'

ENTRYPOINT ["/usr/local/bin/resolver"]
CMD ["action"]
