#!/usr/bin/env bash
# Releases a version: builds the image from this checkout, pushes it, and tags a commit whose
# action.yml names the image by its digest. The branch is left alone.
#
#   scripts/release.sh VERSION
#
# GITHUB_REPOSITORY   OWNER/NAME; its image is $REGISTRY/owner/name
# TOKEN, ACTOR        may write packages and contents of the repository
# REGISTRY            ghcr.io unless given
# GITHUB_SERVER_URL   https://github.com unless given
# BASE                an image of this machine to build on, in place of the Dockerfile's
set -euo pipefail

version=${1:?the version is missing: scripts/release.sh 0.2.0}
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

# Forgotten at the end, where others use the same machine.
DOCKER_CONFIG=$(mktemp -d)
export DOCKER_CONFIG
trap 'rm -rf "$DOCKER_CONFIG"' EXIT

docker login "$registry" --username "$ACTOR" --password-stdin <<<"$TOKEN"
base=(--pull)
[[ -z ${BASE:-} ]] || base=(--build-arg "BASE=$BASE")
docker build "${base[@]}" --tag "$image:$version" \
  --label "org.opencontainers.image.source=$server/$GITHUB_REPOSITORY" \
  --label "org.opencontainers.image.version=$version" \
  --label "org.opencontainers.image.revision=$(git rev-parse HEAD)" .
docker run --rm "$image:$version" --version
docker push "$image:$version"
digest=$(docker image inspect --format '{{join .RepoDigests "\n"}}' "$image:$version" |
  sed -n "s|^$image@||p")
if [[ ! $digest =~ ^sha256:[0-9a-f]{64}$ ]]; then
  echo "the pushed image has no digest" >&2
  exit 1
fi

sed -i "s|^  image: Dockerfile$|  image: docker://$image@$digest # $version|" action.yml
git diff --quiet action.yml && { echo "action.yml has no image to replace" >&2; exit 1; }
git -c user.name=resolver -c user.email=resolver@users.noreply.github.com \
  commit --quiet --message "Release $version" action.yml
git tag "$tag"
as_us push "$server/$GITHUB_REPOSITORY.git" "refs/tags/$tag"
echo "$tag takes $image@$digest"
