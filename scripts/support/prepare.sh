# The needs of demo, test and bench: tools, npm packages, apt packages, a build. The scripts source this file.
# It prints what is missing if it may not install.

say() { printf '%s\n' "$*"; }
fail() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

need_node() {
  command -v node >/dev/null || fail 'Node.js 20.19 or newer is missing (https://nodejs.org)'
  node -e 'const [a, b] = process.versions.node.split(".").map(Number);
    process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' ||
    fail "Node.js 20.19 or newer is needed, this is $(node --version)"
  command -v npm >/dev/null || fail 'npm is missing (it comes with Node.js)'
}

# npm warns about unknown settings in the user's .npmrc, which does not matter here.
run_npm() {
  { npm "$@" 2>&1 >&3 | grep -v 'Unknown \(user\|project\|env\|builtin\|global\) config' >&2; return "${PIPESTATUS[0]}"; } 3>&1
}

# A lock file newer than what was installed from it means: install again.
install_npm_packages() {
  if [ ! -e node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
    say '- npm packages'
    run_npm ci --no-audit --no-fund --loglevel=error || fail 'npm ci failed'
    touch node_modules/.package-lock.json
  fi
}

# install_apt_packages <what for> <package>...: nothing to do for no packages.
install_apt_packages() {
  local purpose=$1 sudo='' log
  shift
  [ $# -gt 0 ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    sudo='sudo -n'
    $sudo true 2>/dev/null || fail "missing for $purpose: $*. As root: apt-get install -y --no-install-recommends $*"
  fi
  command -v apt-get >/dev/null || fail "missing for $purpose, and no apt-get here: $*"
  say "- apt packages: $*"
  log=$(mktemp)
  if ! apt_install "$sudo" "$@" >"$log" 2>&1; then
    # A fresh machine knows no package before its first update.
    $sudo apt-get update >>"$log" 2>&1 || true
    if ! apt_install "$sudo" "$@" >>"$log" 2>&1; then
      tail -n 20 "$log" >&2
      rm -f "$log"
      fail "apt-get could not install: $*"
    fi
  fi
  rm -f "$log"
}

apt_install() {
  local sudo=$1
  shift
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    -o DPkg::Lock::Timeout=120 "$@" </dev/null
}

has_mariadbd() {
  PATH="$PATH:/usr/sbin:/usr/local/sbin:/usr/libexec" command -v mariadbd >/dev/null
}

has_haproxy() {
  PATH="$PATH:/usr/sbin:/usr/local/sbin" command -v haproxy >/dev/null
}

has_nginx() {
  PATH="$PATH:/usr/sbin:/usr/local/sbin" command -v nginx >/dev/null
}

has_prometheus() {
  PATH="$PATH:$(prometheus_cache)/usr/bin" command -v prometheus >/dev/null &&
    PATH="$PATH:$(prometheus_cache)/usr/bin" command -v promtool >/dev/null
}

prometheus_cache() {
  printf '%s' "${XDG_CACHE_HOME:-$HOME/.cache}/dbhttpd/prometheus"
}

# Unpacked into a cache (19 MB to download, 95 MB on disk): installing the package would start a service, and install the files of its web pages.
unpack_prometheus() {
  local cache work
  cache=$(prometheus_cache)
  say "- prometheus, unpacked into $cache"
  mkdir -p "$(dirname "$cache")" && work=$(mktemp -d "$cache.XXXXXX") || fail "cannot write beside $cache"
  if (download_prometheus "$work") >"$work/log" 2>&1; then
    rm -rf "$cache"
    mv "$work/root" "$cache"
    rm -rf "$work"
  else
    tail -n 20 "$work/log" >&2
    rm -rf "$work"
    fail 'apt-get could not download prometheus'
  fi
}

download_prometheus() {
  cd "$1" || return 1
  # A fresh machine knows no package before its first update.
  apt-get -q download prometheus || { apt-get -q update && apt-get -q download prometheus; } || return 1
  dpkg-deb -x prometheus_*.deb root
}

build() {
  say '- build'
  run_npm run --silent build || fail 'the build failed'
}
