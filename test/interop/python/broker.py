# SPDX-License-Identifier: Apache-2.0
"""A running broker for tests.

Builds the binary unless TRIAGEMQ_BINARY names one, starts it on a free loopback
port, or on those it is told, and stops it by its process id. The suites for the SDKs
on uAMQP use it as well.
"""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[3]

# The credentials that --dev accepts on loopback: the emulators' well-known ones.
KEY_NAME = "RootManageSharedAccessKey"
KEY = "SAS_KEY_VALUE"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Broker:
    """One broker process with the given queues, topics and event hubs.

    Each is a flow mapping of the configuration file without its braces, such as
    "name: a, requiresSession: true".
    """

    def __init__(self, queues=(), topics=(), ports=(), hubs=()):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="triagemq-interop-python-"))
        self.binary = os.environ.get("TRIAGEMQ_BINARY") or self._build()
        self.ports = ports or [free_port()]
        self.port = self.ports[0]
        self.config = self.dir / "broker.yaml"
        self.config.write_text("".join(
            f"{name}:\n" + "".join(f"  - {{{item}}}\n" for item in items)
            for name, items in (("queues", queues), ("topics", topics), ("hubs", hubs)) if items))
        self.start()

    def _build(self):
        out = self.dir / "triagemq"
        subprocess.run(["go", "build", "-o", out, "./cmd/triagemq"], cwd=ROOT, check=True)
        return out

    def start(self):
        command = [self.binary, "serve", "--dev", "--data", self.dir / "data", "--config", self.config]
        for port in self.ports:
            command += ["--listen", f"127.0.0.1:{port}"]
        with open(self.dir / "broker.log", "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=2):
                    return
            except (OSError, urllib.error.URLError):
                time.sleep(0.02)
        self.kill()
        raise RuntimeError("broker does not get ready:\n" + self.log())

    def log(self):
        """What the broker has written so far."""
        return (self.dir / "broker.log").read_text()

    def kill(self):
        """Ends the process as a crash would."""
        self.process.kill()
        self.process.wait()

    def terminate(self):
        """Ends the process politely."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            self.kill()

    def stop(self):
        """Ends the process politely and removes its data."""
        self.terminate()
        shutil.rmtree(self.dir, ignore_errors=True)

    @property
    def ca(self):
        """The file that a TLS client has to trust."""
        return str(self.dir / "data" / "tls" / "ca.pem")

    def url(self, key=KEY):
        return f"amqp://{KEY_NAME}:{key}@127.0.0.1:{self.port}"
