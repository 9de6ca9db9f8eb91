# SPDX-License-Identifier: Apache-2.0
"""The broker seen by the Event Hubs SDK for Python, version 5.11.

All of it on the SDK's own AMQP, plain producers also on uAMQP; always over TLS. For
management and consumers the SDK needs uAMQP 1.6, and Debian has 1.5. It runs in a
network namespace of its own: see run.sh.
"""

import asyncio
import contextlib
import datetime
import io
import pathlib
import re
import threading
import unittest
import uuid

from azure.eventhub import EventData, EventHubConsumerClient, EventHubProducerClient, TransportType
from azure.eventhub import aio
from azure.eventhub.amqp import AmqpAnnotatedMessage, AmqpMessageProperties
from azure.eventhub.exceptions import ConnectError, EventHubError

import broker as running
from hub import PATIENCE, Reader, Told, connection

# What the SDK cannot be told otherwise: AMQP, and WebSockets.
PORTS = [5671, 443]

NAMES = {
    "any": 4, "one": 4, "keys": 8, "single": 1, "refused": 2, "buffered": 4, "large": 1, "positions": 2, "latest": 1,
    "tracking": 1, "properties": 3, "bodies": 1, "steal": 1, "same": 1, "lower": 1, "mixed": 1, "unknown": 2,
    "groups": 1, "five": 1, "websocket": 1, "secured": 1, "async": 2, "restart": 1,
}
TRANSPORTS = ["pyamqp", "uamqp"]
HUBS = [f"name: {name}-{transport}, partitionCount: {count}, consumerGroups: [audit]"
        for name, count in NAMES.items() for transport in TRANSPORTS] + ["name: clicks, partitionCount: 4"]


def setUpModule():
    global broker
    broker = running.Broker(ports=PORTS, hubs=HUBS)


def tearDownModule():
    broker.stop()


def numbers(start, end):
    return [str(i) for i in range(start, end)]


def events(*bodies):
    return [EventData(b) for b in bodies]


class Readme(unittest.TestCase):
    """The program of the README works as it stands there, but for the certificate."""

    def test_program(self):
        text = (pathlib.Path(__file__).parents[3] / "README.md").read_text()
        program = next(b for b in re.findall("```python\n(.*?)```", text, re.DOTALL) if "azure.eventhub" in b)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(program.replace("/tmp/triage/tls/ca.pem", str(broker.ca)), {})
        self.assertEqual(out.getvalue(), "0 hello\n")


class Client:
    """A producer on one transport, and readers on the SDK's own."""

    transport = None

    def setUp(self):
        self.options = {"uamqp_transport": self.transport == "uamqp"}

    def hub(self, name):
        return f"{name}-{self.transport}"

    def producer(self, name, key=running.KEY, **options):
        options = {"retry_total": 0, **self.options, **options}
        p = EventHubProducerClient.from_connection_string(
            connection(key), eventhub_name=self.hub(name), connection_verify=broker.ca, **options)
        self.addCleanup(p.close)
        return p

    def read(self, name, partition="0", client_options=(), **options):
        r = Reader(self.hub(name), partition, broker.ca, client_options=client_options, **options)
        self.addCleanup(r.close)
        return r

    def last(self, name):
        """The last sequence number of each partition."""
        p = self.producer(name, uamqp_transport=False)
        return {i: p.get_partition_properties(i)["last_enqueued_sequence_number"] for i in p.get_partition_ids()}

    def all_of(self, name, partition, last):
        r = self.read(name, partition)
        r.until(f"{last + 1} events", lambda: r.errors or len(r.events) == last + 1)
        self.assertEqual([], r.errors)
        return r.events


class Producers(Client):
    def test_batches_to_the_hub_are_spread(self):
        p = self.producer("any")
        for i in range(8):
            batch = p.create_batch()
            batch.add(EventData(f"{i} a"))
            batch.add(EventData(f"{i} b"))
            p.send_batch(batch)
        self.assertEqual({"0": 3, "1": 3, "2": 3, "3": 3}, self.last("any"))
        bodies = [e.body_as_str() for e in self.all_of("any", "2", 3)]
        self.assertEqual([bodies[0][0] + " b", bodies[2][0] + " b"], [bodies[1], bodies[3]])

    def test_single_events(self):
        p = self.producer("single")
        for body in "abc":
            p.send_event(EventData(body))
        self.read("single").wants("a", "b", "c")

    def test_largest_batch(self):
        p, body, n = self.producer("large"), "x" * 10_000, 0
        batch = p.create_batch()
        with self.assertRaises(ValueError):
            while True:
                batch.add(EventData(body))
                n += 1
        self.assertGreater(batch.size_in_bytes, 1_000_000)
        p.send_batch(batch)
        self.read("large").wants(*[body] * n)
        with self.assertRaises(ValueError):
            p.send_batch(events("x" * 700_000, "x" * 700_000))

    def test_wrong_key_and_certificate(self):
        with self.assertRaises(EventHubError):
            self.producer("secured", key="wrong").send_batch(events("a"))
        if self.transport == "uamqp":  # the SDK's own verifies only what it is told to
            p = EventHubProducerClient.from_connection_string(
                connection(), eventhub_name=self.hub("secured"), retry_total=0, auth_timeout=3, **self.options)
            self.addCleanup(p.close)
            with self.assertRaises(EventHubError):
                p.send_batch(events("a"))
        self.producer("secured").send_batch(events("b"))
        self.read("secured").wants("b")


class More(Client):
    """What uAMQP 1.5 cannot do, because this SDK needs 1.6 of it: management and consumers."""

    def test_batch_and_list_and_event_to_one_partition(self):
        p = self.producer("one")
        batch = p.create_batch(partition_id="2")
        batch.add(EventData("a"))
        p.send_batch(batch)
        p.send_batch(events("b", "c"), partition_id="2")
        p.send_event(EventData("d"), partition_id="2")
        self.read("one", "2").wants("a", "b", "c", "d")
        self.assertEqual({"0": -1, "1": -1, "2": 3, "3": -1}, self.last("one"))

    def test_keys_keep_together(self):
        # Not where the SDK's buffered producer sends them: it takes the remainder of a
        # negative hash otherwise than the service and the other SDKs.
        keys = [f"key {i}" for i in range(40)] + ["ключ", "x" * 100]
        p, homes = self.producer("keys"), {}
        for _ in range(2):
            for k in keys:
                p.send_batch(events(k), partition_key=k)
        for partition, last in self.last("keys").items():
            for e in self.all_of("keys", partition, last) if last >= 0 else []:
                self.assertEqual(e.body_as_str().encode(), e.partition_key)
                homes.setdefault(e.body_as_str(), []).append(partition)
        self.assertEqual({k: 2 for k in keys}, {k: len(v) for k, v in homes.items()})
        self.assertEqual({k: 1 for k in keys}, {k: len(set(v)) for k, v in homes.items()})

    def test_buffered(self):
        told, errors = [], []
        # The SDK adds events to a batch that another of its threads may be sending, and then
        # loses them: with a long time nobody else sends.
        with self.producer("buffered", buffered_mode=True, max_wait_time=600, on_success=lambda sent, _: told.extend(sent),
                           on_error=lambda sent, partition, error: errors.append(error)) as p:
            for body in numbers(0, 200):
                p.send_event(EventData(body))
            p.send_batch(events(*numbers(200, 250)), partition_id="3")
            p.flush()
        self.assertEqual(([], 250), (errors, len(told)))
        seen = []
        for partition, last in self.last("buffered").items():
            self.assertGreaterEqual(last, 0, partition)
            seen += [e.body_as_str() for e in self.all_of("buffered", partition, last)]
        self.assertEqual(numbers(0, 250), sorted(seen, key=int))

    def test_key_with_partition_is_refused(self):
        p = self.producer("refused")
        with self.assertRaises((TypeError, ValueError, EventHubError)):
            batch = p.create_batch(partition_id="0", partition_key="k")
            batch.add(EventData("keyed"))
            p.send_batch(batch)
        self.producer("refused").send_batch(events("plain"), partition_id="0")
        self.read("refused").wants("plain")

    def test_send_to_unknown(self):
        with self.assertRaises(EventHubError):
            self.producer("unknown").send_batch(events("a"), partition_id="2")
        with self.assertRaises(EventHubError):
            self.producer("no-such-hub").send_batch(events("a"))

    def test_positions(self):
        p, count = self.producer("positions"), 9
        p.send_batch(events("of another partition"), partition_id="0")
        for i in range(0, count, 3):
            p.send_batch(events(*numbers(i, i + 3)), partition_id="1")
        bodies = numbers(0, count)

        def start(position, want, inclusive=False):
            r = self.read("positions", "1", position=position, starting_position_inclusive=inclusive)
            got = r.wants(*want)
            r.close()  # there may be five
            return got

        sent = start("-1", bodies)
        self.assertEqual(list(range(count)), [e.sequence_number for e in sent])
        for i in (0, 1, 5):
            e = sent[i]
            start(e.sequence_number, bodies[i + 1:])
            start(e.sequence_number, bodies[i:], inclusive=True)
            start(e.offset, bodies[i + 1:])
            start(e.offset, bodies[i:], inclusive=True)
            start(e.enqueued_time, [b for b in bodies if sent[int(b)].enqueued_time >= e.enqueued_time], inclusive=True)
            later = [b for b in bodies if sent[int(b)].enqueued_time > e.enqueued_time]
            if later:
                start(e.enqueued_time, later)
        start(datetime.datetime(1970, 1, 2, tzinfo=datetime.timezone.utc), bodies)

    def test_latest(self):
        p = self.producer("latest")
        p.send_batch(events("old", "old"))
        r = self.read("latest", position="@latest")
        sent = 0
        while not r.events:  # the SDK does not say when the link is open
            p.send_batch(events(f"new {sent}"))
            sent += 1
            self.assertEqual([], r.errors)
        self.assertRegex(r.bodies()[0], "^new")

    def test_last_enqueued_event_is_told(self):
        self.producer("tracking").send_batch(events("a", "b", "c"))
        r = self.read("tracking", track_last_enqueued_event_properties=True)
        last = r.wants("a", "b", "c")[-1]
        r.until("told", lambda: r.last and r.last["sequence_number"] == 2)
        self.assertEqual((last.offset, last.enqueued_time), (r.last["offset"], r.last["enqueued_time"]))
        self.assertIsNotNone(r.last["retrieval_time"])

    def test_groups_read_alike(self):
        self.producer("groups").send_batch(events("a", "b"))
        for group in ("$Default", "$default", "audit"):
            self.read("groups", group=group).wants("a", "b")

    def test_properties(self):
        p = self.producer("properties")
        hub = p.get_eventhub_properties()
        self.assertEqual((self.hub("properties"), ["0", "1", "2"]), (hub["eventhub_name"], hub["partition_ids"]))
        self.assertLess(hub["created_at"], datetime.datetime.now(hub["created_at"].tzinfo) + datetime.timedelta(minutes=1))
        empty = p.get_partition_properties("1")
        self.assertEqual((True, -1, "1"), (empty["is_empty"], empty["last_enqueued_sequence_number"], empty["id"]))
        p.send_batch(events("a", "b"), partition_id="1")
        last = self.read("properties", "1").wants("a", "b")[-1]
        full = p.get_partition_properties("1")
        self.assertEqual((False, 0, 1, last.offset, last.enqueued_time),
                         (full["is_empty"], full["beginning_sequence_number"], full["last_enqueued_sequence_number"],
                          full["last_enqueued_offset"], full["last_enqueued_time_utc"]))

    def test_round_trip(self):
        p = self.producer("bodies")
        plain = EventData("ä€")
        plain.properties = {"text": "ö", "number": 5, "yes": True, "fraction": 1.5, "id": uuid.UUID(int=7)}
        plain.content_type, plain.correlation_id, plain.message_id = "text/plain", "c-1", "m-1"
        raw = EventData(bytes([0, 1, 255]))
        value, sequence, data = (
            AmqpAnnotatedMessage(properties=AmqpMessageProperties(message_id="annotated", subject="s", group_id="g"),
                                 application_properties={"a": "b"}, annotations={"x-opt-mine": "kept"}, **body)
            for body in ({"value_body": {"a": [1, "two"]}}, {"sequence_body": [["a", 1], ["b"]]}, {"data_body": [b"one", b"two"]}))
        p.send_batch([plain, raw, value, sequence, data])
        r = self.read("bodies")
        r.until("all", lambda: r.errors or len(r.events) == 5)
        self.assertEqual([], r.errors)
        got = r.events[0]
        self.assertEqual("ä€", got.body_as_str())
        self.assertEqual(("text/plain", "c-1", "m-1"), (got.content_type, got.correlation_id, got.message_id))
        text = lambda v: v.decode() if isinstance(v, bytes) else v  # uAMQP and the SDK's own differ
        self.assertEqual(plain.properties, {text(k): text(v) for k, v in got.properties.items()})
        self.assertEqual(bytes([0, 1, 255]), b"".join(r.events[1].body))
        value, sequence, data = r.events[2:]
        self.assertEqual({"a": [1, "two"]}, {text(k): [text(i) for i in v] for k, v in value.body.items()})
        self.assertEqual([["a", 1], ["b"]], [[text(i) for i in s] for s in sequence.body])
        self.assertEqual([b"one", b"two"], list(data.body))
        for e in (value, sequence, data):
            self.assertEqual("annotated", e.message_id)
            self.assertEqual({"a": "b"}, {text(k): text(v) for k, v in e.properties.items()})
            annotations = {text(k): text(v) for k, v in e.raw_amqp_message.annotations.items()}
            self.assertEqual("kept", annotations["x-opt-mine"])

    def test_read_unknown(self):
        self.read("unknown", group="no-such-group").refused()
        self.read("unknown", "2").refused()
        self.read("unknown", position="nonsense").refused("offset")
        self.read("no-such-hub").refused()

    # owner levels

    def test_higher_owner_level_steals(self):
        p = self.producer("steal")
        p.send_batch(events("a"))
        first = self.read("steal", owner_level=1)
        first.wants("a")
        second = self.read("steal", owner_level=2)
        second.wants("a")
        first.refused("ConnectionLostError", "epoch of '2'")
        first.close()
        p.send_batch(events("b"))
        second.wants("a", "b")

    def test_same_owner_level_steals(self):
        p = self.producer("same")
        p.send_batch(events("a"))
        first = self.read("same", owner_level=0, client_options={"load_balancing_interval": 600})  # it would steal back
        first.wants("a")
        second = self.read("same", owner_level=0)
        second.wants("a")
        first.refused("ConnectionLostError")
        p.send_batch(events("b"))
        second.wants("a", "b")

    def test_lower_owner_level_is_refused(self):
        p = self.producer("lower")
        p.send_batch(events("a"))
        holder = self.read("lower", owner_level=5)
        holder.wants("a")
        self.read("lower", owner_level=4).refused("higher epoch '5' already exists")
        self.read("lower").refused("non-epoch receiver is not allowed")
        p.send_batch(events("b"))
        holder.wants("a", "b")

    def test_owner_disconnects_readers_without_level(self):
        self.producer("mixed").send_batch(events("a"))
        readers = [self.read("mixed"), self.read("mixed")]
        for r in readers:
            r.wants("a")
        self.read("mixed", owner_level=0).wants("a")
        for r in readers:
            r.refused("epoch")

    def test_sixth_reader_is_refused(self):
        p = self.producer("five")
        p.send_batch(events("a"))
        readers = [self.read("five") for _ in range(5)]
        for r in readers:
            r.wants("a")
        self.read("five").refused("maximum number of allowed receivers per partition in a consumer group which is 5")
        self.read("five", group="audit").wants("a")
        p.send_batch(events("b"))
        for r in readers:
            r.wants("a", "b")

    # transports and restarts

    def test_websocket(self):
        p = self.producer("websocket", transport_type=TransportType.AmqpOverWebsocket)
        p.send_batch(events("over a WebSocket"))
        self.read("websocket", client_options={"transport_type": TransportType.AmqpOverWebsocket}).wants("over a WebSocket")

    def test_async(self):
        async def run():
            options = dict(eventhub_name=self.hub("async"), connection_verify=broker.ca, retry_total=0, **self.options)
            got = asyncio.Queue()
            async with aio.EventHubProducerClient.from_connection_string(connection(), **options) as p, \
                    aio.EventHubConsumerClient.from_connection_string(connection(), "$Default", **options) as c:
                await p.send_batch(events("a", "b"), partition_id="1")

                async def on_event(_, e):
                    await got.put(e.body_as_str())

                reading = asyncio.create_task(c.receive(on_event, partition_id="1", starting_position="-1"))
                self.assertEqual(["a", "b"], [await asyncio.wait_for(got.get(), PATIENCE) for _ in range(2)])
                properties = await c.get_partition_properties("1")
                self.assertEqual(1, properties["last_enqueued_sequence_number"])
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)
        asyncio.run(run())


class PyamqpTest(Producers, More, unittest.TestCase):
    transport = "pyamqp"


class UamqpTest(Producers, unittest.TestCase):
    transport = "uamqp"


class RestartTest(unittest.TestCase):
    """A broker that is killed loses nothing, and readers go on where they were."""

    def test_kill(self):
        patient = dict(retry_total=100, retry_backoff_factor=0.05, retry_backoff_max=0.5)
        hub = "restart-pyamqp"
        acked, stop, told, problems = [0], threading.Event(), Told(), []
        told.state = lambda: f"{acked[0]} acknowledged, {problems}"

        def load():
            try:
                with EventHubProducerClient.from_connection_string(
                        connection(), eventhub_name=hub, connection_verify=broker.ca, **patient) as p:
                    while not stop.is_set():
                        p.send_batch(events(str(acked[0])))
                        with told.changed:
                            acked[0] += 1
                            told.changed.notify_all()
            except Exception as error:  # it is shown by told
                with told.changed:
                    problems.append(error)
                    told.changed.notify_all()

        sender = threading.Thread(target=load, daemon=True)
        sender.start()
        r = Reader(hub, "0", broker.ca, client_options=patient)
        try:
            for _ in range(2):
                start = acked[0]
                told.until("sent", lambda: problems or acked[0] >= start + 20)
                broker.kill()
                broker.start()
            start = acked[0]
            told.until("sent", lambda: problems or acked[0] >= start + 20, 2 * PATIENCE)
            stop.set()
            sender.join(PATIENCE)
            self.assertEqual([], problems)
            r.until("read all", lambda: r.events and r.events[-1].body_as_str() == str(acked[0] - 1), 2 * PATIENCE)
            # A retried event may have been stored twice; numbers are dense, and none is skipped.
            by_number = {e.sequence_number: e.body_as_str() for e in r.events}
            self.assertEqual(list(range(len(by_number))), sorted(by_number))
            self.assertEqual(numbers(0, acked[0]), list(dict.fromkeys(by_number[n] for n in sorted(by_number))))
        finally:
            stop.set()
            r.close()


if __name__ == "__main__":
    unittest.main()
