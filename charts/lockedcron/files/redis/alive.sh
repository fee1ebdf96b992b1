#!/bin/sh
set -eu
. /etc/redis/common.sh
[ "$(as probe PING)" = PONG ]
