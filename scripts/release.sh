#!/usr/bin/env bash
# Releases a version in two steps, so that what is signed in between is what is released.
#
#   scripts/release.sh image VERSION          builds the image of this checkout and pushes it; writes
#                                             its bill of materials to sbom.cdx.json
#   scripts/release.sh tag VERSION DIGEST     tags a commit whose action.yml names the image by its
#                                             digest. The branch is left alone.
#
# GITHUB_REPOSITORY   OWNER/NAME; its image is $REGISTRY/owner/name
# TOKEN, ACTOR        `image`: may write packages and read contents; `tag`: may write contents
# REGISTRY            ghcr.io unless given
# GITHUB_SERVER_URL   https://github.com unless given
# GITHUB_OUTPUT       file for the outputs `image` and `digest` of the first step
set -euo pipefail

usage="usage: scripts/release.sh image 0.2.0, or scripts/release.sh tag 0.2.0 sha256:..."
step=${1:?$usage}
version=${2:?$usage}
registry=${REGISTRY:-ghcr.io}
server=${GITHUB_SERVER_URL:-https://github.com}
image=$registry/$(tr '[:upper:]' '[:lower:]' <<<"$GITHUB_REPOSITORY")
tag=v$version

if [[ ! $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]]; then
  echo "$version is not like 0.2.0" >&2
  exit 2
fi
if ! grep -qxF "__version__ = \"$version\"" resolver/__init__.py; then
  echo "resolver/__init__.py does not say $version" >&2
  exit 2
fi

# The token reaches git by the environment of one process, and the engine by stdin.
as_us() {
  GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="http.$server/.extraHeader" \
    GIT_CONFIG_VALUE_0="Authorization: Basic $(printf 'x-access-token:%s' "$TOKEN" | base64 -w0)" \
    git "$@"
}

if [[ -n $(as_us ls-remote "$server/$GITHUB_REPOSITORY.git" "refs/tags/$tag") ]]; then
  echo "$tag exists already: a version is released only once" >&2
  exit 2
fi

build_image() {
  # Forgotten at the end, where others use the same machine.
  DOCKER_CONFIG=$(mktemp -d)
  export DOCKER_CONFIG
  trap 'rm -rf "$DOCKER_CONFIG"' EXIT

  docker login "$registry" --username "$ACTOR" --password-stdin <<<"$TOKEN"
  # A name like python:3.12-slim refers to other images over time. It is resolved once, and the
  # image says which one it was built on.
  local base base_digest
  base=$(sed -n 's/^ARG BASE=//p' Dockerfile)
  docker pull --quiet "$base"
  base_digest=$(digest_of "$base")
  check_digest "$base_digest"
  docker build --build-arg "BASE=${base%:*}@$base_digest" --tag "$image:$version" \
    --label "org.opencontainers.image.base.name=$base" \
    --label "org.opencontainers.image.base.digest=$base_digest" \
    --label "org.opencontainers.image.source=$server/$GITHUB_REPOSITORY" \
    --label "org.opencontainers.image.version=$version" \
    --label "org.opencontainers.image.revision=$(git rev-parse HEAD)" .
  docker run --rm "$image:$version" --version
  python3 "$(dirname "$0")/sbom.py" "$image:$version" >sbom.cdx.json
  docker push "$image:$version"
  local digest
  digest=$(digest_of "$image:$version")
  check_digest "$digest"
  printf 'image=%s\ndigest=%s\n' "$image" "$digest" >>"${GITHUB_OUTPUT:-/dev/stdout}"
}

# Prints the digest by which the registry has an image that was pulled or pushed as NAME:TAG.
digest_of() {
  docker image inspect --format '{{join .RepoDigests "\n"}}' "$1" | sed -n "s|^${1%:*}@||p"
}

check_digest() {
  if [[ ! $1 =~ ^sha256:[0-9a-f]{64}$ ]]; then
    echo "the image's digest is not like sha256:...: '$1'" >&2
    exit 1
  fi
}

tag_commit() {
  check_digest "$1"
  sed -i "s|^  image: Dockerfile$|  image: docker://$image@$1 # $version|" action.yml
  git diff --quiet action.yml && { echo "action.yml has no image to replace" >&2; exit 1; }
  git -c user.name=resolver -c user.email=resolver@users.noreply.github.com \
    commit --quiet --message "Release $version" action.yml
  git tag "$tag"
  as_us push "$server/$GITHUB_REPOSITORY.git" "refs/tags/$tag"
  echo "$tag takes $image@$1"
}

case $step in
  image) build_image ;;
  tag) tag_commit "${3:?$usage}" ;;
  *) echo "$usage" >&2; exit 2 ;;
esac
