# The needs of the tests: packages and a build.
# Sourced after prepare.sh, by the scripts that run the suite.

prepare_tests() {
  local missing=()
  need_node
  install_npm_packages
  command -v flock >/dev/null || missing+=(util-linux)
  [ -n "${DBHTTPD_TEST_MYSQL:-}" ] || has_mariadbd || missing+=(mariadb-server-core)
  [ -e /usr/share/zoneinfo/zone.tab ] || missing+=(tzdata)
  command -v openssl >/dev/null || missing+=(openssl)
  command -v curl >/dev/null || missing+=(curl)
  command -v jq >/dev/null || missing+=(jq)
  has_haproxy || missing+=(haproxy)
  has_nginx || missing+=(nginx-light)
  command -v dpkg-deb >/dev/null || missing+=(dpkg)
  command -v rpmbuild >/dev/null || missing+=(rpm)
  command -v chromium >/dev/null || missing+=(chromium)
  install_apt_packages 'the tests' ${missing[@]+"${missing[@]}"}
  has_prometheus || unpack_prometheus
  build
}
