#!/usr/bin/env bash
# Tries the project as a newcomer would: in a Debian 12 root made for it, from a fresh clone. CONTRIBUTING.md explains it.
#
#   sudo tests/fresh-debian.sh [STEP…]      default: demo test ci
#
# STEP is a target of the Makefile (`test ARGS="-m pure"`), or `ci` for .ci/run. The clone lies in /root, which nobody else
# may enter (mode 0700), and root runs the steps. With FRESH_USER it lies in the home of a new user, who runs them after
# root has installed Debian's packages. The root has Python, make and little else, and leaves out /usr/share/doc as images
# for containers do. It uses this machine's apt sources, certificates and pip settings, shares its network, and is gone
# afterwards, with every mount and process in it. Environment:
#
#   FRESH_USER       who runs the steps (default: root); another name is made
#   FRESH_PLACE      where the clone lies in the root (default: webarcfs in the home of that user)
#   FRESH_DIR        where the root is made (default: $TMPDIR, else /tmp); about 2 GB
#   FRESH_SOURCES    apt sources to use, a file (default: this machine's, where it is a Debian 12)
#   FRESH_BIND       folders to show inside under the same path, read only (package mirrors that pip is told to use)
#   FRESH_WORKTREE   1: the files as they are now, instead of a clone of HEAD
#   FRESH_KEEP       1: leave the root where it is
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
steps=("$@")
[ $# != 0 ] || steps=(demo test ci)

if [ "${FRESH_INSIDE:-}" = "" ]; then
  [ "$(id -u)" = 0 ] || { echo "fresh-debian.sh: must be root, to make a root" >&2; exit 1; }
  for command in mmdebstrap unshare git; do
    command -v "$command" > /dev/null || { echo "fresh-debian.sh: $command is missing; apt-get install it" >&2; exit 1; }
  done
  [ -c /dev/fuse ] || { echo "fresh-debian.sh: there is no /dev/fuse to bind in" >&2; exit 1; }
  top=$(mktemp -d "${FRESH_DIR:-${TMPDIR:-/tmp}}/webarcfs-fresh-XXXXXX")
  # All mounts are made in a mount namespace that ends with the script inside, so nothing is below but files.
  cleanup() {
    status=$?
    trap - EXIT
    trap '' INT TERM HUP
    kill -KILL "${child:-}" 2> /dev/null || true # the kernel ends all that runs inside with it
    wait
    if [ "${FRESH_KEEP:-}" = 1 ]; then echo "kept: $top"; else rm -rf --one-file-system "$top"; fi
    exit "$status"
  }
  trap cleanup EXIT
  trap 'exit 130' INT TERM HUP
  chmod 755 "$top"
  export FRESH_INSIDE="$top"
  unshare --mount --propagation private --pid --fork --kill-child "$0" "${steps[@]}" &
  child=$!
  wait "$child"
  exit
fi

top=$FRESH_INSIDE root=$FRESH_INSIDE/root user=${FRESH_USER:-root}
if [ "$user" = root ]; then home=/root; else home=/home/$user; fi
place=${FRESH_PLACE:-$home/webarcfs}

sources() {
  if [ -n "${FRESH_SOURCES:-}" ]; then cat "$FRESH_SOURCES"
  elif grep -q '^VERSION_CODENAME=bookworm$' /etc/os-release; then
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.sources; do
      if [ -s "$file" ]; then grep -v '^#' "$file"; echo; fi
    done
  else
    echo "fresh-debian.sh: this machine is no Debian 12; name a file with apt sources for one in FRESH_SOURCES" >&2
    return 1
  fi
}

make_root() {
  apt-config dump | grep -E '^Acquire::(Check-|http|https|Retries|ForceIPv)' > "$top/apt.conf" || true
  sources > "$top/sources"
  mmdebstrap --quiet --variant=minbase --include=make,python3 --aptopt="$top/apt.conf" \
    --dpkgopt='path-exclude=/usr/share/doc/*' bookworm "$root" - < "$top/sources"
}

# What lets the newcomer reach the same package servers as this machine.
take_over_settings() {
  mkdir -p "$root/etc/ssl/certs" "$root/usr/local/share/ca-certificates" "$root$home/.config/pip"
  cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
  [ ! -e /etc/ssl/certs/ca-certificates.crt ] || cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
  cp -RL /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/"
  [ ! -e /etc/pip.conf ] || cp /etc/pip.conf "$root/etc/pip.conf"
  [ ! -e "$HOME/.config/pip/pip.conf" ] || cp "$HOME/.config/pip/pip.conf" "$root$home/.config/pip/"
  local name
  for name in $(compgen -e | grep -E '^PIP_|^(https?|ftp|all|no)_proxy$|^(HTTPS?|ALL|NO)_PROXY$' || true); do
    printf 'export %s=%q\n' "$name" "${!name}"
  done > "$root/etc/environment-of-this-machine"
}

make_user() {
  chmod 700 "$root/root"
  [ "$user" = root ] || chroot "$root" useradd --create-home --shell /bin/bash "$user"
}

bring_in() {
  mkdir -p "$root$place"
  if [ "${FRESH_WORKTREE:-}" = 1 ]; then
    git -C "$here" ls-files -z -co --exclude-standard | tar -C "$here" --null --ignore-failed-read -T - -c |
      tar -C "$root$place" --no-same-owner -x
  else
    git -c safe.directory='*' clone --quiet "$here" "$root$place"
  fi
  # Git trusts a folder only whose owner asks it.
  chroot "$root" chown -R "$user:" "$home" "$place"
}

mount_kernel() {
  mount --bind "$root" "$root" # so that / is a mount point inside, as it is on any machine
  mount -t proc proc "$root/proc"
  mount --rbind /sys "$root/sys"
  mount --rbind /dev "$root/dev"
  # As udev makes it: every user may mount by way of fusermount3.
  mkdir "$top/node"
  mount -t tmpfs -o size=64k,mode=755 tmpfs "$top/node" # where devices may be, unlike in some /tmp
  mknod -m 666 "$top/node/fuse" c 10 229
  mount --bind "$top/node/fuse" "$root/dev/fuse"
  local folder
  for folder in ${FRESH_BIND:-}; do
    mkdir -p "$root$folder"
    mount --bind -o ro "$folder" "$root$folder"
  done
}

# inside USER COMMAND: in the clone, as that user.
inside() {
  local as
  as=$(chroot "$root" getent passwd "$1" | cut -d: -f6)
  # shellcheck disable=SC2016 # the words are the inner shell's
  chroot "$root" setpriv --reuid="$1" --regid="$1" --init-groups /usr/bin/env -i HOME="$as" USER="$1" LANG=C.UTF-8 CI=true \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    bash -c '. /etc/environment-of-this-machine; cd "$1"; eval "$2"' bash "$place" "$2" < /dev/null
}

try() {
  local begun=$SECONDS
  echo "== $1: $2"
  if inside "$user" "$2"; then echo "== $1: passed after $((SECONDS - begun)) s"
  else echo "== $1: FAILED after $((SECONDS - begun)) s"; return 1
  fi
}

begun=$SECONDS
make_root
make_user
take_over_settings
bring_in
mount_kernel
echo "== a Debian $(cat "$root/etc/debian_version") with $(chroot "$root" dpkg -l | grep -c ^ii) packages after $((SECONDS - begun)) s"
echo "== $user in $place"
[ "$user" = root ] || inside root "make system-packages demo-packages test-packages compile-packages bench-packages"
failed=0
for step in "${steps[@]}"; do
  case $step in
    ci) try .ci/run "bash .ci/run" || failed=1 ;;
    *) try "make $step" "make $step" || failed=1 ;;
  esac
done
left=$(inside root "find /tmp /mnt -mindepth 1 -maxdepth 1 ! -name 'pytest-of-*'; grep -c 'fuse.webarcfs' /proc/self/mountinfo || true")
echo "== left in /tmp, and mounts of webarcfs: $(echo "$left" | tr '\n' ' ')"
exit "$failed"
