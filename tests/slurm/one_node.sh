#!/usr/bin/env bash
# Start or stop a SLURM cluster of this machine alone, for tests, as root: one_node.sh start FOLDER PORT PORT, or stop FOLDER.
# Debian's package slurm-wlm has all that it needs. Commands find the cluster with SLURM_CONF=FOLDER/slurm.conf.
set -euo pipefail
folder=$(realpath "$2")
host=$(hostname -s)

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
JobRequeue=1
SchedulerParameters=batch_sched_delay=0
SlurmdParameters=config_overrides
NodeName=$host NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=debug Nodes=$host Default=YES MaxTime=INFINITE State=UP
CONF
  # The cluster has no database of jobs, from which sacct would answer: the controller answers in its place.
  mkdir -p "$folder/bin"
  cat > "$folder/bin/sacct" << 'SACCT'
#!/usr/bin/env bash
echo "JobID|State|NodeList"
scontrol -o show job | sed -nE '
  s/^JobId=[0-9]+ ArrayJobId=([0-9]+) ArrayTaskId=([0-9]+) .*JobState=([A-Z]+).*/\1_\2|\3|node/p; t
  s/^JobId=([0-9]+) .*JobState=([A-Z]+).*/\1|\2|node/p'
SACCT
  chmod +x "$folder/bin/sacct"
  export SLURM_CONF="$folder/slurm.conf"
  slurmctld
  slurmd -N "$host"
  for _ in $(seq 100); do
    sinfo --noheader --format %T 2> /dev/null | grep -q idle && return
    sleep 0.2
  done
  echo "the node is not idle after 20 seconds: $(sinfo 2>&1)" >&2
  tail -n 20 "$folder"/*.log >&2
  exit 1
}

stop() {
  for name in slurmd slurmctld munged; do
    [ -f "$folder/$name.pid" ] && kill "$(cat "$folder/$name.pid")" 2> /dev/null || true
  done
}

case "$1" in start) start "$@" ;; stop) stop ;; *) exit 2 ;; esac
