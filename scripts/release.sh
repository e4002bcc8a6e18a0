#!/usr/bin/env bash
# Releases a version in steps, so that what is signed in between is what is released.
#
#   scripts/release.sh package VERSION        builds wheel and source distribution of the newest
#                                             commit into dist/, and fails if they are not
#                                             reproducible
#   scripts/release.sh image VERSION          builds the image of this checkout for this machine's
#                                             architecture and pushes it as VERSION-ARCHITECTURE
#   scripts/release.sh index VERSION DIGEST...  pushes VERSION, which names these images, one for
#                                             each architecture
#   scripts/release.sh browser VERSION, browser-index VERSION DIGEST...  the same for the image of
#                                             the agent's browser, as VERSION-browser
#   scripts/release.sh tag VERSION DIGEST     tags a commit whose action.yml names the image by its
#                                             digest. The branch is left alone.
#
# Package and tag name GITHUB_REPOSITORY where the branch has the placeholder OWNER/resolver, so that
# the examples of a version can be copied, and `resolver init` knows where the package came from.
#
#   scripts/release.sh notes VERSION          prints the section of the version in CHANGELOG.md
#
# GITHUB_REPOSITORY   OWNER/NAME; its image is $REGISTRY/owner/name
# TOKEN, ACTOR        `image`, `index`: may write packages and read contents; `tag`: may write
#                     contents; `package`: may read contents; not needed for `notes`
# PYTHON              `package`: a Python that has the packages of requirements/build.txt; they are
#                     installed into a virtual environment unless given
# REGISTRY            ghcr.io unless given
# GITHUB_SERVER_URL   https://github.com unless given
# GITHUB_OUTPUT       file for the outputs `image` and `digest` of `image` and `index`
# GITHUB_STEP_SUMMARY file for the sizes
set -euo pipefail

usage="usage: scripts/release.sh package|image|browser|index|browser-index|tag|notes 0.2.0 [sha256:...]"
step=${1:?$usage}
version=${2:?$usage}
version=${version#release/}
shift 2
registry=${REGISTRY:-ghcr.io}
server=${GITHUB_SERVER_URL:-https://github.com}
image=$registry/$(tr '[:upper:]' '[:lower:]' <<<"${GITHUB_REPOSITORY:-}")
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

refuse_released_version() {
  local tags
  tags=$(as_us ls-remote "$server/$GITHUB_REPOSITORY.git" "refs/tags/$tag")
  if [[ -n $tags ]]; then
    echo "$tag exists already: a version is released only once" >&2
    exit 2
  fi
}

report() {
  echo "$1" | tee -a "${GITHUB_STEP_SUMMARY:-/dev/null}"
}

with_placeholder=(README.md docs compose.yaml deploy pyproject.toml action.yml resolver/config/documentation.py)

# Writes the repository and its image into the pages, examples and package data of a folder.
name_repository() {
  local name found=()
  for name in "${with_placeholder[@]}"; do
    [[ ! -e $1/$name ]] || found+=("$1/$name")
  done
  { grep -rlZI OWNER/resolver "${found[@]}" || true; } | xargs -0r sed -i \
    -e "s|ghcr.io/OWNER/resolver|$image|g" \
    -e "s|https://github.com/OWNER/resolver|$server/$GITHUB_REPOSITORY|g" \
    -e "s|OWNER/resolver|$GITHUB_REPOSITORY|g"
  [[ ! -e $1/README.md ]] || sed -i '/^<!-- Only on branches:/,/^<!-- end -->$/d' "$1/README.md"
}

build_package() {
  local python=${PYTHON:-} folder dist=$PWD/dist
  folder=$(mktemp -d)
  trap "rm -rf '$folder'" EXIT
  if [[ -z $python ]]; then
    python3 -m venv "$folder/venv"
    python=$folder/venv/bin/python
    "$python" -m pip install --quiet --disable-pip-version-check --require-hashes \
      --only-binary :all: -r requirements/build.txt
  fi
  # Files in the packages get the time of the commit.
  SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
  SOURCE_COMMIT=$(git rev-parse HEAD)
  export SOURCE_DATE_EPOCH SOURCE_COMMIT
  rm -rf dist
  mkdir "$folder/tree"
  git archive HEAD | tar -xf - -C "$folder/tree"
  name_repository "$folder/tree"
  (cd "$folder/tree" && "$python" -m hatchling build -t sdist -t wheel -d "$dist")

  # The wheel that users build from the source distribution is the one that is published.
  mkdir "$folder/source"
  tar -xzf dist/*.tar.gz -C "$folder/source" --strip-components 1
  (cd "$folder/source" && "$python" -m hatchling build -t wheel -d "$folder/wheel")
  cmp dist/*.whl "$folder"/wheel/*.whl
  local file
  for file in dist/*; do
    report "$(basename "$file"): $(($(wc -c <"$file") / 1000)) kB"
  done
}

log_in() {
  # Forgotten at the end, where others use the same machine.
  DOCKER_CONFIG=$(mktemp -d)
  export DOCKER_CONFIG
  trap 'rm -rf "$DOCKER_CONFIG"' EXIT
  docker login "$registry" --username "$ACTOR" --password-stdin <<<"$TOKEN"
}

# Builds the image of the Dockerfile $1 and pushes it as $2-ARCHITECTURE.
build_image() {
  log_in
  # A name like python:3.12-slim refers to other images over time. It is resolved once, and the
  # image says which one it was built on.
  local base base_digest name commit
  name=$image:$2-$(docker version --format '{{.Server.Arch}}')
  commit=$(git rev-parse HEAD)
  base=$(sed -n 's/^ARG BASE=//p' "$1")
  docker pull --quiet "$base"
  base_digest=$(digest_of "$base")
  check_digest "$base_digest"
  docker build --file "$1" --build-arg "BASE=${base%:*}@$base_digest" --tag "$name" \
    --build-arg "SOURCE_COMMIT=$commit" \
    --label "org.opencontainers.image.base.name=$base" \
    --label "org.opencontainers.image.base.digest=$base_digest" \
    --label "org.opencontainers.image.source=$server/$GITHUB_REPOSITORY" \
    --label "org.opencontainers.image.version=$version" \
    --label "org.opencontainers.image.revision=$commit" .
  docker run --rm "$name" --version
  docker push "$name"
  local digest size
  digest=$(digest_of "$name")
  check_digest "$digest"
  size=$(docker image inspect --format '{{.Size}}' "$name")
  report "$name: $((size / 1000000)) MB, unpacked"
  write_outputs "$digest"
}

# Pushes the tag $1, which names the images with the other digests.
push_index() {
  local digest output insecure=() tag=$1
  shift
  # Unlike the engine, this command has to be told that the registry speaks plain HTTP.
  [[ $registry =~ ^(127\.0\.0\.1|localhost): ]] && insecure=(--insecure)
  for digest in "$@"; do
    check_digest "$digest"
  done
  log_in
  docker manifest create "${insecure[@]}" "$image:$tag" "${@/#/$image@}"
  output=$(docker manifest push "${insecure[@]}" "$image:$tag")
  digest=$(tail -n 1 <<<"$output")
  check_digest "$digest"
  write_outputs "$digest"
}

write_outputs() {
  printf 'image=%s\ndigest=%s\n' "$image" "$1" >>"${GITHUB_OUTPUT:-/dev/stdout}"
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
  name_repository .
  local changed
  mapfile -d '' changed < <(git diff --name-only -z -- action.yml "${with_placeholder[@]}")
  git -c user.name=resolver -c user.email=resolver@users.noreply.github.com \
    commit --quiet --message "Release $version" -- "${changed[@]}"
  git tag "$tag"
  as_us push "$server/$GITHUB_REPOSITORY.git" "refs/tags/$tag"
  echo "$tag takes $image@$1"
}

print_notes() {
  local notes
  notes=$(awk -v heading="## $version" \
    '/^## / { inside = index($0 " ", heading " ") == 1; next } inside' CHANGELOG.md)
  if [[ -z ${notes//[[:space:]]/} ]]; then
    echo "CHANGELOG.md has no section for $version" >&2
    exit 1
  fi
  echo "$notes"
}

[[ $step == notes ]] || refuse_released_version
case $step in
  package) build_package ;;
  image) build_image Dockerfile "$version" ;;
  browser) build_image deploy/browser.Dockerfile "$version-browser" ;;
  index) push_index "$version" "${@:?$usage}" ;;
  browser-index) push_index "$version-browser" "${@:?$usage}" ;;
  tag) tag_commit "${1:?$usage}" ;;
  notes) print_notes ;;
  *) echo "$usage" >&2; exit 2 ;;
esac
