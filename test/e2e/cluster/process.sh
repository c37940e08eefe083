# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Background processes with pid files; sourced after env.sh.
#
# A pid file holds the process id and the process's start time, so that a later process which
# happens to get the same id is never taken for ours.

proc_start() { # PID -> start time in clock ticks (field 22 of stat, counted after the name)
  { sed 's/^.*) //' "/proc/$1/stat" | cut -d ' ' -f 20; } 2>/dev/null
}

alive() { # NAME
  local pid='' start=''
  { read -r pid start <"$RUN/$1.pid"; } 2>/dev/null || return 1
  [ -n "$start" ] && [ "$(proc_start "$pid")" = "$start" ] || return 1
  if ! grep -q '^State:[[:space:]]*[ZX]' "/proc/$pid/status" 2>/dev/null; then return 0; fi
  # A zombie whose threads are still ending (many of them, much memory) has its ports and files yet.
  local threads=("/proc/$pid/task/"*)
  [ "${#threads[@]}" -gt 1 ]
}

port_free() { # [ADDRESS:]PORT
  local host=127.0.0.1 port=${1##*:}
  case $1 in *:*) host=${1%:*} ;; esac
  ! (exec 3<>"/dev/tcp/$host/$port") 2>/dev/null
}

start() { # NAME COMMAND...    does nothing when it runs already
  local name=$1 pid
  shift
  if alive "$name"; then return 0; fi
  # In the background of a script setsid needs no fork of its own, so $! is the command.
  setsid nohup "$@" >"$LOG/$name.log" 2>&1 </dev/null &
  pid=$!
  printf '%s %s\n' "$pid" "$(proc_start "$pid")" >"$RUN/$name.pid"
}

stop() { # NAME [SECONDS] [quietly]    asks nicely for so long (10), then kills
  local name=$1 seconds=${2:-10} quietly=${3:-} pid tries
  if alive "$name"; then
    read -r pid _ <"$RUN/$name.pid"
    kill -TERM "$pid" 2>/dev/null || true
    for ((tries = seconds * 20; tries > 0; tries--)); do
      alive "$name" || break
      sleep 0.05
    done
    if alive "$name"; then
      [ -n "$quietly" ] || say "$name did not end within ${seconds}s: killing it"
      kill -KILL "$pid" 2>/dev/null || true
      while alive "$name"; do sleep 0.02; done
    fi
  fi
  rm -f "$RUN/$name.pid"
}

wait_until() { # SECONDS WHAT PROCESS COMMAND...    fails at once when PROCESS ends
  local seconds=$1 what=$2 process=$3 deadline
  shift 3
  deadline=$(($(now_ms) + seconds * 1000))
  until "$@" >/dev/null 2>&1; do
    if ! alive "$process"; then
      tail -n 15 "$LOG/$process.log" >&2 || true
      die "$process ended while waiting for $what; its whole log: $LOG/$process.log"
    fi
    if [ "$(now_ms)" -ge "$deadline" ]; then
      tail -n 15 "$LOG/$process.log" >&2 || true
      die "$what: not within ${seconds}s; see $LOG/$process.log"
    fi
    sleep 0.05
  done
}
