"""A Slurm of one machine, for tests: slurmctld, slurmd and munged, with everything they write in one folder."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scancel", "scontrol", "sinfo")
CONFIG = """
ClusterName=local
SlurmctldHost=localhost(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/run/munge.socket
CryptoType=crypto/munge
SlurmctldPort={controller}
SlurmdPort={daemon}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/slurmd.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
SchedulerType=sched/builtin
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmdParameters=config_overrides
NodeName=localhost NodeAddr=127.0.0.1 CPUs=4 RealMemory=4000 State=UNKNOWN
PartitionName=main Nodes=localhost Default=YES MaxTime=60 State=UP
"""


class Slurm:
    """Started when made, with a node of 4 CPUs; ``config`` is what ``SLURM_CONF`` has to name."""

    def __init__(self, folder: Path) -> None:
        missing = [name for name in PROGRAMS if shutil.which(name) is None]
        assert not missing, f"{', '.join(missing)} not found: install the packages slurm-wlm and munge"
        self.folder = folder
        for name in ("run", "state", "spool", "log"):
            (folder / name).mkdir(parents=True)
        key = folder / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(128))
        self.config = folder / "slurm.conf"
        controller, daemon = free_ports(2)
        self.config.write_text(CONFIG.format(folder=folder, user=getpass.getuser(), controller=controller, daemon=daemon))
        files = {"key-file": key, "socket": "run/munge.socket", "pid-file": "run/munged.pid", "log-file": "log/munged.log"}
        self._run("munged", "--force", *(f"--{name}={folder / file}" for name, file in files.items()), f"--seed-file={folder}/run/seed")
        self._run("slurmctld", "-c", "-f", str(self.config))
        self._run("slurmd", "-c", "-N", "localhost", "-f", str(self.config))
        deadline = time.monotonic() + 60
        while "idle" not in self._run("sinfo", "-h", "-o", "%T"):
            assert time.monotonic() < deadline, (folder / "log" / "slurmctld.log").read_text()
            time.sleep(0.1)

    def queued(self) -> str:
        """The jobs that wait or run, a line each."""
        return self._run("squeue", "-h", "-r")

    def stop(self) -> None:
        """Ends all of it, jobs too."""
        self._run("scancel", "--user", getpass.getuser())
        self._run("scontrol", "shutdown")
        pids = [self.folder / "run" / f"{name}.pid" for name in ("slurmd", "slurmctld", "munged")]
        deadline = time.monotonic() + 20
        while any(path.exists() for path in pids[:2]) and time.monotonic() < deadline:
            time.sleep(0.1)
        for path in pids:
            with contextlib.suppress(FileNotFoundError, ProcessLookupError, ValueError):
                os.kill(int(path.read_text()), signal.SIGTERM)

    def _run(self, *command: str) -> str:
        environment = {**os.environ, "SLURM_CONF": str(self.config)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout


def free_ports(n: int) -> list[int]:
    """Ports of loopback that nobody listens on."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
