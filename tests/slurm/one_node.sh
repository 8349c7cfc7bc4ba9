#!/usr/bin/env bash
# Start or stop a SLURM cluster of this machine alone, for tests, as root: one_node.sh start FOLDER PORT PORT, or stop FOLDER.
# With two ports more it has accounting: a database of jobs, from which sacct answers, and accounts, of which "lab" exists.
# Debian's slurm-wlm has what it needs, with slurmdbd and mariadb-server for accounting. Commands find the cluster with
# SLURM_CONF=FOLDER/slurm.conf.
set -euo pipefail
folder=$(realpath "$2")
host=$(hostname -s)
export SLURM_CONF="$folder/slurm.conf"

start() {
  mkdir -p "$folder"/{state,spool,munge}
  chmod 755 "$folder" "$folder/munge"
  dd if=/dev/urandom of="$folder/munge.key" bs=128 count=1 status=none
  chmod 400 "$folder/munge.key"
  munged --force --key-file "$folder/munge.key" --socket "$folder/munge/socket" \
    --log-file "$folder/munged.log" --pid-file "$folder/munged.pid" --seed-file "$folder/munge.seed"
  cat > "$folder/slurm.conf" << CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$3
SlurmdPort=$4
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
JobRequeue=0
SchedulerParameters=batch_sched_delay=0
SlurmdParameters=config_overrides
NodeName=$host NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=debug Nodes=$host Default=YES MaxTime=INFINITE State=UP
CONF
  [ $# -gt 4 ] && account "$5" "$6"
  slurmctld
  slurmd -N "$host"
  wait_for is_idle
}

is_empty() { [ -z "$(squeue --noheader)" ]; }

is_idle() { sinfo --noheader --format %T | grep -q idle; }

account() {
  mariadb-install-db --datadir="$folder/db" --auth-root-authentication-method=normal --user=root > "$folder/mariadb.log" 2>&1
  mariadbd --no-defaults --datadir="$folder/db" --user=root --bind-address=127.0.0.1 --port="$1" --socket="$folder/db/socket" \
    --pid-file="$folder/mariadbd.pid" >> "$folder/mariadb.log" 2>&1 &
  cat > "$folder/slurmdbd.conf" << CONF
DbdHost=$host
DbdAddr=127.0.0.1
DbdPort=$2
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=$1
StorageUser=root
LogFile=$folder/slurmdbd.log
PidFile=$folder/slurmdbd.pid
CONF
  chmod 600 "$folder/slurmdbd.conf"
  cat >> "$folder/slurm.conf" << CONF
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=$2
AccountingStoragePass=$folder/munge/socket
AccountingStorageEnforce=associations
CONF
  wait_for mariadb-admin --no-defaults --socket="$folder/db/socket" ping
  slurmdbd
  wait_for sacctmgr --immediate add cluster test
  sacctmgr --immediate add account lab > "$folder/sacctmgr.log"
  sacctmgr --immediate add user root account=lab >> "$folder/sacctmgr.log"
}

wait_for() {
  for _ in $(seq 100); do
    "$@" &> /dev/null && return
    sleep 0.2
  done
  echo "after 20 seconds this still fails: $*" >&2
  tail -n 20 "$folder"/*.log >&2
  exit 1
}

stop() {
  # first: a process that starts or ends while slurmd stops would stay for ever
  [ -f "$folder/slurmctld.pid" ] && scancel --quiet --user=root && wait_for is_empty
  for name in slurmd slurmctld slurmdbd mariadbd munged; do
    [ -f "$folder/$name.pid" ] || continue
    pid=$(cat "$folder/$name.pid")
    kill "$pid" 2> /dev/null || true
    wait_for has_ended "$pid"
  done
}

# a process that nobody has waited for still has a folder in /proc
has_ended() { ! grep -qs . "/proc/$1/cmdline"; }

case "$1" in start) start "$@" ;; stop) stop ;; *) exit 2 ;; esac
