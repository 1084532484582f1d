# shellcheck shell=bash
# Sourced: `tool PACKAGE VERSION` puts a pinned program on the PATH, built once into the user's cache.
command -v go >/dev/null || PATH="$PATH:/usr/local/go/bin"
export GOFLAGS="${GOFLAGS:-} -p=1" # gentle to machines that are shared

tool() {
  local bin="${XDG_CACHE_HOME:-$HOME/.cache}/baton/go/${1##*/}-$2" out
  [[ -x "$bin/${1##*/}" ]] || out=$(GOBIN="$bin" go install "$1@$2" 2>&1) || { printf '%s\n' "$out" >&2; return 1; }
  PATH="$bin:$PATH"
}
