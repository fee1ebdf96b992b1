#!/bin/sh
# Ready: it answers, and has been up for so long that no lock is alive which it may have forgotten. Whoever waits for
# readiness (a rollout, a drain) then never takes a majority's memory at once.
set -eu
. /etc/redis/common.sh
up=$(as probe INFO server | sed -n 's/^uptime_in_seconds:\([0-9]*\).*/\1/p')
if [ "${up:-0}" -lt "$QUARANTINE_SECONDS" ]; then
  echo "up for ${up:-0} s: in quarantine until $QUARANTINE_SECONDS s"
  exit 1
fi
