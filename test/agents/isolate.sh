#!/bin/sh
# Runs a command with loopback as its only network, with its own processes, an empty environment and a home of its own:
#   KEEP="DIR..." READ="DIR..." VARIABLES="A=1 B=2" isolate.sh HOME COMMAND...
# All files are read-only, except those below KEEP. Of /tmp, /root and /home, only KEEP and READ are there. Needs root.
home=$1
shift
exec unshare --net --mount --pid --fork --kill-child --mount-proc --propagation private sh -ec '
  ip link set lo up
  mount -t tmpfs none /mnt
  n=0
  for folder in $KEEP $READ; do
    n=$((n + 1)); mkdir /mnt/$n; mount --bind "$folder" /mnt/$n
  done
  for folder in /tmp /root /home /etc/claude-code /etc/codex /etc/gemini-cli /etc/opencode; do
    [ ! -d "$folder" ] || mount -t tmpfs none "$folder"
  done
  mount -o remount,bind,ro /
  n=0
  for folder in $KEEP; do
    n=$((n + 1)); [ -d "$folder" ] || mkdir -p "$folder"; mount --bind /mnt/$n "$folder"
  done
  for folder in $READ; do
    n=$((n + 1)); [ -d "$folder" ] || mkdir -p "$folder"; mount --bind /mnt/$n "$folder"
    mount -o remount,bind,ro "$folder"
  done
  umount -l /mnt
  exec env -i HOME="$0" PATH=/usr/local/bin:/usr/bin:/bin TERM=dumb LANG=C.UTF-8 $VARIABLES "$@"' "$home" "$@"
