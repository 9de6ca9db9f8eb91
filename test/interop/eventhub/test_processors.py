# SPDX-License-Identifier: Apache-2.0
"""The processors of the Event Hubs SDK for Python with its blob checkpoint store."""

import concurrent.futures
import pathlib
import subprocess
import sys
import threading
import unittest

from azure.eventhub import EventData, EventHubProducerClient
from azure.storage.blob import ContainerClient

import broker as running
from hub import Told, connection

PARTITIONS = 6
HERE = pathlib.Path(__file__).resolve().parent
STRATEGIES = ["balanced", "greedy"]


def setUpModule():
    global broker, azurite, blobs
    broker = running.Broker(ports=[5671, 443], hubs=[f"name: {s}, partitionCount: {PARTITIONS}" for s in STRATEGIES])
    azurite = subprocess.Popen(["node", HERE.parent / "js" / "azurite.mjs"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    blobs = azurite.stdout.readline().strip()


def tearDownModule():
    azurite.kill()
    azurite.communicate()
    broker.stop()


class Instance:
    def __init__(self, fleet, arguments):
        self.owns, self.first = set(), {}
        self.process = subprocess.Popen([sys.executable, HERE / "processor.py", *arguments], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.thread = threading.Thread(target=self.listen, args=(fleet,), daemon=True)
        self.thread.start()

    def listen(self, fleet):
        for line in self.process.stdout:
            fleet.heard(self, *line.split())


class Fleet(Told):
    """The instances of one processor, and what they have told."""

    def __init__(self, strategy):
        super().__init__()
        self.hub = strategy
        self.arguments = [connection(), strategy, broker.ca, blobs, strategy, strategy]
        self.alive, self.seen, self.done = [], {}, {}

    def start(self):
        i = Instance(self, self.arguments)
        with self.changed:
            self.alive.append(i)
        return i

    def heard(self, i, what, partition, number=None, body=None):
        with self.changed:
            if what == "claim":
                i.owns.add(partition)
            elif what == "lost":
                i.owns.discard(partition)
            elif what == "event":
                self.seen[body] = self.seen.get(body, 0) + 1
                i.first.setdefault(partition, int(number))
            elif what == "checkpoint":
                self.done[partition] = int(number)
            self.changed.notify_all()

    def kill(self, i):
        """Ends an instance as a crash would; stop does it politely."""
        i.process.kill()
        self.ended(i)

    def stop(self, i):
        i.process.stdin.close()
        self.ended(i)
        if i.process.returncode != 0:
            raise AssertionError(f"an instance of {self.hub} ended with {i.process.returncode}")

    def ended(self, i):
        i.process.wait(30)
        i.thread.join(30)
        with self.changed:
            self.alive.remove(i)

    def balanced(self):
        """Whether each instance owns its share and nothing is owned twice."""
        owned = [p for i in self.alive for p in i.owns]
        return all(len(i.owns) == PARTITIONS // len(self.alive) for i in self.alive) and len(set(owned)) == PARTITIONS

    def state(self):
        return f"{self.hub}: {len(self.seen)} events seen, {[sorted(i.owns) for i in self.alive]}, {self.done}"

    def play(self):
        """Three instances share six partitions; one is killed, one is added; all stop, and one
        resumes from the checkpoints of all."""
        ContainerClient.from_connection_string(blobs, self.hub).create_container()
        sent = 0
        with EventHubProducerClient.from_connection_string(connection(), eventhub_name=self.hub, connection_verify=broker.ca) as p:
            def publish():
                nonlocal sent
                for partition in range(PARTITIONS):
                    p.send_batch([EventData(str(sent + i)) for i in range(10)], partition_id=str(partition))
                    sent += 10

            def settled():
                return self.balanced() and len(self.seen) == sent

            try:
                publish()
                first = self.start()
                self.start()
                self.start()
                self.until("three with two partitions each", settled, 60)
                publish()
                self.kill(first)  # in the middle of it
                publish()
                self.until("two with three partitions each", settled, 60)
                self.start()
                publish()
                self.until("three with two partitions each again", settled, 60)
                last = {str(i): p.get_partition_properties(str(i))["last_enqueued_sequence_number"] for i in range(PARTITIONS)}
                self.until("everything in checkpoints", lambda: self.done == last, 60)
                for i in list(self.alive):
                    self.stop(i)
                publish()
                resumed = self.start()
                self.until("one with all partitions", settled, 60)
                self.stop(resumed)
                wanted = {partition: number + 1 for partition, number in last.items()}
                if resumed.first != wanted:
                    raise AssertionError(f"resumed at {resumed.first}, want {wanted}")
            finally:
                for i in list(self.alive):
                    self.kill(i)


class ProcessorsTest(unittest.TestCase):
    def test_fleets(self):
        with concurrent.futures.ThreadPoolExecutor() as pool:
            plays = {strategy: pool.submit(Fleet(strategy).play) for strategy in STRATEGIES}
        for strategy, play in plays.items():
            with self.subTest(strategy):
                play.result()
