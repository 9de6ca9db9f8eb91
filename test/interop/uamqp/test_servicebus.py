# SPDX-License-Identifier: Apache-2.0
"""The broker seen by the Service Bus SDK for Python, version 7.8 on uAMQP.

It runs in a network namespace of its own: see run.sh.
"""

import asyncio
import contextlib
import datetime
import io
import os
import re
import socket
import ssl
import threading
import time
import unittest

from azure.servicebus import (
    AutoLockRenewer, NEXT_AVAILABLE_SESSION, ServiceBusClient, ServiceBusMessage,
    ServiceBusReceiveMode, ServiceBusSubQueue, TransportType)
from azure.servicebus import aio
from azure.servicebus import exceptions
from azure.servicebus.amqp import AmqpAnnotatedMessage
from azure.servicebus.management import (
    ServiceBusAdministrationClient, SqlRuleFilter)
from azure.core.exceptions import ResourceNotFoundError

import broker as running

# What the SDK cannot be told otherwise: AMQP, and WebSockets with administration.
PORTS = [5671, 443]

QUEUES = [
    "name: plain", "name: batches", "name: deleting", "name: settling, maxDeliveryCount: 3", "name: deferring",
    "name: peeking", "name: scheduling", "name: sessions, requiresSession: true", "name: renewing, lockDuration: 5s",
    "name: priorities", "name: annotated", "name: large", "name: websocket", "name: endpoint", "name: async",
    "name: async-sessions, requiresSession: true", "name: restart", "name: restarts", "name: secured", "name: orders",
]
TOPICS = ["name: news, subscriptions: [{name: all}]"]

PATIENCE = 10  # seconds that anything may take


def setUpModule():
    global broker
    broker = running.Broker(QUEUES, TOPICS, PORTS)
    os.environ["REQUESTS_CA_BUNDLE"] = broker.ca  # what the administration client reads


def tearDownModule():
    broker.stop()


def connection(key=running.KEY):
    return f"Endpoint=sb://localhost;SharedAccessKeyName={running.KEY_NAME};SharedAccessKey={key}"


def bodies(messages):
    return [str(m) for m in messages]


class SyncTest(unittest.TestCase):
    def setUp(self):
        self.client = self.connect()

    def connect(self, key=running.KEY, **options):
        options.setdefault("retry_total", 0)
        client = ServiceBusClient.from_connection_string(connection(key), connection_verify=broker.ca, **options)
        self.addCleanup(client.close)
        return client

    def send(self, queue, *messages, client=None):
        with (client or self.client).get_queue_sender(queue) as sender:
            for m in messages:
                sender.send_messages(m if isinstance(m, (ServiceBusMessage, AmqpAnnotatedMessage)) else ServiceBusMessage(m))

    def receiver(self, queue, client=None, **options):
        receiver = (client or self.client).get_queue_receiver(queue, **options)
        self.addCleanup(receiver.close)
        return receiver

    def take(self, receiver, n):
        """Receives exactly n messages."""
        out = []
        while len(out) < n:
            some = receiver.receive_messages(max_message_count=n - len(out), max_wait_time=PATIENCE)
            self.assertTrue(some, f"{len(out)} of {n} messages came")
            out += some
        return out

    def complete(self, receiver, messages):
        for m in messages:
            receiver.complete_message(m)

    def assertEmpty(self, receiver):
        self.assertEqual([], receiver.receive_messages(max_wait_time=0.5))

    def test_send_receive_complete(self):
        self.send("plain", "a", "b", "c")
        receiver = self.receiver("plain")
        messages = self.take(receiver, 3)
        self.assertEqual(["a", "b", "c"], bodies(messages))
        self.complete(receiver, messages)
        self.assertEmpty(receiver)

    def test_list_and_batch(self):
        with self.client.get_queue_sender("batches") as sender:
            sender.send_messages([ServiceBusMessage(str(i)) for i in range(10)])
            batch = sender.create_message_batch()
            for i in range(10, 20):
                batch.add_message(ServiceBusMessage(str(i)))
            sender.send_messages(batch)
        receiver = self.receiver("batches")
        messages = self.take(receiver, 20)
        self.assertEqual([str(i) for i in range(20)], bodies(messages))
        self.complete(receiver, messages)

    def test_receive_and_delete(self):
        self.send("deleting", "a", "b")
        receiver = self.receiver("deleting", receive_mode=ServiceBusReceiveMode.RECEIVE_AND_DELETE)
        self.assertEqual(["a", "b"], bodies(self.take(receiver, 2)))
        self.assertEmpty(receiver)

    def test_abandon_and_dead_letter(self):
        self.send("settling", "a")
        receiver = self.receiver("settling")
        m = self.take(receiver, 1)[0]
        self.assertEqual(0, m.delivery_count)
        receiver.abandon_message(m)
        m = self.take(receiver, 1)[0]
        self.assertEqual(1, m.delivery_count)
        receiver.dead_letter_message(m, reason="bad", error_description="very")
        dead = self.receiver("settling", sub_queue=ServiceBusSubQueue.DEAD_LETTER)
        m = self.take(dead, 1)[0]
        self.assertEqual(("bad", "very"), (m.dead_letter_reason, m.dead_letter_error_description))
        dead.complete_message(m)

    def test_defer(self):
        self.send("deferring", "a")
        receiver = self.receiver("deferring")
        m = self.take(receiver, 1)[0]
        receiver.defer_message(m)
        self.assertEmpty(receiver)
        again = receiver.receive_deferred_messages(m.sequence_number)
        self.assertEqual(["a"], bodies(again))
        self.complete(receiver, again)

    def test_peek(self):
        self.send("peeking", "a", "b")
        receiver = self.receiver("peeking")
        self.assertEqual(["a", "b"], bodies(receiver.peek_messages(5)))
        self.complete(receiver, self.take(receiver, 2))
        self.assertEqual([], receiver.peek_messages(5))

    def test_schedule_and_cancel(self):
        at = datetime.datetime.utcnow() + datetime.timedelta(hours=1)
        with self.client.get_queue_sender("scheduling") as sender:
            numbers = sender.schedule_messages([ServiceBusMessage("a"), ServiceBusMessage("b")], at)
            self.assertEqual(2, len(numbers))
            sender.cancel_scheduled_messages(numbers[0])
            receiver = self.receiver("scheduling")
            self.assertEqual(["b"], bodies(receiver.peek_messages(5)))
            sender.cancel_scheduled_messages(numbers[1])

    def test_sessions(self):
        self.send("sessions", *[ServiceBusMessage(f"{s}{i}", session_id=s) for i in range(2) for s in "xy"])
        with self.receiver("sessions", session_id="y") as receiver:
            receiver.session.set_state("half")
            self.assertEqual(b"half", receiver.session.get_state())
            receiver.session.renew_lock()
            messages = self.take(receiver, 2)
            self.assertEqual(["y0", "y1"], bodies(messages))
            self.complete(receiver, messages)
        with self.receiver("sessions", session_id=NEXT_AVAILABLE_SESSION, max_wait_time=PATIENCE) as receiver:
            self.assertEqual("x", receiver.session.session_id)
            self.complete(receiver, self.take(receiver, 2))

    def test_renew_lock(self):
        self.send("renewing", "a")
        receiver = self.receiver("renewing")
        m = self.take(receiver, 1)[0]
        before = m.locked_until_utc
        self.assertGreater(receiver.renew_message_lock(m), before)
        with AutoLockRenewer() as renewer:
            renewer.register(receiver, m, max_lock_renewal_duration=PATIENCE)
        receiver.complete_message(m)

    def test_priorities(self):
        self.send("priorities", *[ServiceBusMessage(p, application_properties={"Priority": p}) for p in ("Low", "High")])
        receiver = self.receiver("priorities")
        messages = self.take(receiver, 2)
        self.assertEqual(["High", "Low"], bodies(messages))
        self.complete(receiver, messages)

    def test_sections_of_a_message(self):
        """uAMQP writes the footer and delivery annotations, in this order, before the body."""
        sent = AmqpAnnotatedMessage(
            data_body=b"body", header={"priority": 3, "durable": True}, footer={"sum": "f"},
            properties={"message_id": "id", "subject": "s", "correlation_id": "c"},
            application_properties={"number": 5, "text": "t", "yes": True, "float": 1.5},
            annotations={"note": "m"}, delivery_annotations={"hint": "d"})
        self.send("annotated", sent)
        receiver = self.receiver("annotated")
        m = self.take(receiver, 1)[0]
        raw = m.raw_amqp_message
        self.assertEqual(b"body", b"".join(raw.body))
        self.assertEqual({b"number": 5, b"text": b"t", b"yes": True, b"float": 1.5}, m.application_properties)
        self.assertEqual(b"m", raw.annotations[b"note"])
        self.assertEqual((b"id", b"s"), (raw.properties.message_id, raw.properties.subject))
        self.assertEqual({b"sum": b"f"}, raw.footer)
        self.assertTrue(raw.header.durable)
        receiver.complete_message(m)

    def test_large_message(self):
        body = b"x" * 200_000
        self.send("large", body)
        receiver = self.receiver("large")
        m = self.take(receiver, 1)[0]
        self.assertEqual(body, b"".join(m.body))
        receiver.complete_message(m)

    def test_topic(self):
        with self.client.get_topic_sender("news") as sender:
            sender.send_messages(ServiceBusMessage("a"))
        with self.client.get_subscription_receiver("news", "all") as receiver:
            messages = self.take(receiver, 1)
            self.assertEqual(["a"], bodies(messages))
            self.complete(receiver, messages)

    def test_refusals(self):
        with self.assertRaises(exceptions.ServiceBusAuthenticationError):
            self.send("secured", "a", client=self.connect(key="wrong"))
        with self.assertRaises((exceptions.MessagingEntityNotFoundError, exceptions.ServiceBusAuthenticationError)):
            self.send("no-such-queue", "a")

    def test_websocket(self):
        """uAMQP asks for a path with a slash at its end."""
        client = self.connect(transport_type=TransportType.AmqpOverWebsocket)
        self.send("websocket", "a", client=client)
        receiver = self.receiver("websocket", client=client)
        messages = self.take(receiver, 1)
        self.assertEqual(["a"], bodies(messages))
        self.complete(receiver, messages)

    def test_custom_endpoint(self):
        """The only way to another port: a WebSocket at a custom endpoint."""
        client = self.connect(custom_endpoint_address=f"sb://127.0.0.1:{PORTS[0]}")
        self.send("endpoint", "a", client=client)
        receiver = self.receiver("endpoint", client=client)
        self.complete(receiver, self.take(receiver, 1))


class AsyncTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.client = aio.ServiceBusClient.from_connection_string(
            connection(), connection_verify=broker.ca, retry_total=0)
        self.addAsyncCleanup(self.client.close)

    async def take(self, receiver, n):
        out = []
        while len(out) < n:
            some = await receiver.receive_messages(max_message_count=n - len(out), max_wait_time=PATIENCE)
            self.assertTrue(some, f"{len(out)} of {n} messages came")
            out += some
        return out

    async def test_send_receive_settle(self):
        async with self.client.get_queue_sender("async") as sender:
            await sender.send_messages([ServiceBusMessage(str(i)) for i in range(10)])
        async with self.client.get_queue_receiver("async") as receiver:
            self.assertEqual([str(i) for i in range(5)], bodies(await receiver.peek_messages(5)))
            messages = await self.take(receiver, 10)
            self.assertEqual([str(i) for i in range(10)], bodies(messages))
            await receiver.renew_message_lock(messages[0])
            await receiver.abandon_message(messages[0])
            again = await self.take(receiver, 1)
            self.assertEqual(1, again[0].delivery_count)
            for m in messages[1:] + again:
                await receiver.complete_message(m)

    async def test_sessions(self):
        async with self.client.get_queue_sender("async-sessions") as sender:
            await sender.send_messages([ServiceBusMessage(s, session_id=s) for s in "xyz"])
        for s in "xyz":
            async with self.client.get_queue_receiver("async-sessions", session_id=s) as receiver:
                await receiver.session.set_state(s)
                messages = await self.take(receiver, 1)
                self.assertEqual([s], bodies(messages))
                await receiver.complete_message(messages[0])

    async def test_many_requests_at_a_time(self):
        """The replies of a node never overtake the dispositions of their requests."""
        async def one(i):
            async with self.client.get_queue_receiver("async") as receiver:
                for _ in range(5):
                    await receiver.peek_messages(1)
        await asyncio.gather(*[one(i) for i in range(8)])


class AdministrationTest(unittest.TestCase):
    def setUp(self):
        self.admin = ServiceBusAdministrationClient.from_connection_string(connection(), retry_total=0)
        self.addCleanup(self.admin.close)

    def test_queue(self):
        made = self.admin.create_queue("made", max_delivery_count=7, lock_duration=datetime.timedelta(seconds=45))
        self.assertEqual((7, datetime.timedelta(seconds=45)), (made.max_delivery_count, made.lock_duration))
        made.max_delivery_count = 9
        self.admin.update_queue(made)
        self.assertEqual(9, self.admin.get_queue("made").max_delivery_count)
        self.assertEqual(0, self.admin.get_queue_runtime_properties("made").total_message_count)
        self.assertIn("made", [q.name for q in self.admin.list_queues()])
        self.admin.delete_queue("made")
        with self.assertRaises(ResourceNotFoundError):
            self.admin.get_queue("made")

    def test_topic_subscription_rule(self):
        self.admin.create_topic("made-topic")
        self.addCleanup(self.admin.delete_topic, "made-topic")
        self.admin.create_subscription("made-topic", "sub")
        self.admin.create_rule("made-topic", "sub", "high", filter=SqlRuleFilter("level > 3"))
        self.assertEqual({"$Default", "high"}, {r.name for r in self.admin.list_rules("made-topic", "sub")})
        self.admin.delete_rule("made-topic", "sub", "$Default")
        rule = self.admin.get_rule("made-topic", "sub", "high")
        self.assertEqual("level > 3", rule.filter.sql_expression)
        runtime = self.admin.get_subscription_runtime_properties("made-topic", "sub")
        self.assertEqual(0, runtime.active_message_count)
        self.assertEqual("sub", [s.name for s in self.admin.list_subscriptions("made-topic")][0])
        self.assertTrue(self.admin.get_namespace_properties().name)


class GuideTest(unittest.TestCase):
    """Runs the snippets of the guide and the README as they are, but for the CA's file."""

    def run_snippets(self, page):
        text = (running.ROOT / page).read_text()
        snippets = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        snippets = [s for s in snippets if "azure.eventhub" not in s]  # which ../eventhub runs
        self.assertTrue(snippets)
        printed = io.StringIO()
        for snippet in snippets:
            with contextlib.redirect_stdout(printed):
                exec(compile(snippet.replace("/tmp/triage/tls/ca.pem", broker.ca), page, "exec"), {})
        return printed.getvalue().splitlines()

    def test_guide(self):
        printed = self.run_snippets("docs/guide/python.md")
        self.assertEqual(["hello", "one", "two"], printed[:3])
        self.assertIn("invoices", printed[3])

    def test_readme(self):
        printed = self.run_snippets("README.md")
        self.assertEqual([f"{p} {i}" for p in ("High", "Low") for i in range(10)], printed)


class LogTest(unittest.TestCase):
    def test_untrusted_certificate_is_logged(self):
        """The SDK itself says nothing for a minute, so the broker has to."""
        untrusting = ssl.create_default_context()
        with socket.create_connection(("localhost", PORTS[0])) as s:
            with self.assertRaises(ssl.SSLCertVerificationError):
                untrusting.wrap_socket(s, server_hostname="localhost")
        deadline = time.monotonic() + PATIENCE
        while "TLS handshake failed" not in broker.log():
            self.assertLess(time.monotonic(), deadline, broker.log())
            time.sleep(0.02)


class RestartTest(unittest.TestCase):
    """A client goes on after the broker was stopped in good order, and after it was killed."""

    def test_restart(self):
        client = ServiceBusClient.from_connection_string(
            connection(), connection_verify=broker.ca, retry_total=10, retry_backoff_factor=0.1, retry_mode="fixed")
        with client, client.get_queue_sender("restart") as sender, client.get_queue_receiver("restart") as receiver:
            sender.send_messages(ServiceBusMessage("before"))
            for end in (broker.terminate, broker.kill):
                end()
                broker.start()
                sender.send_messages(ServiceBusMessage("after"))
                got = set()
                while got != {"before", "after"}:
                    some = receiver.receive_messages(max_message_count=2, max_wait_time=PATIENCE)
                    self.assertTrue(some)
                    for m in some:
                        receiver.complete_message(m)
                        got.add(str(m))
                sender.send_messages(ServiceBusMessage("before"))

    def test_stopped_while_sending(self):
        """Senders go on while the broker is stopped and started; what was acknowledged is there."""
        acknowledged, going = set(), threading.Event()
        progress = [threading.Event() for _ in range(2)]

        def send(i):
            client = ServiceBusClient.from_connection_string(
                connection(), connection_verify=broker.ca, retry_total=10, retry_backoff_factor=0.1, retry_mode="fixed")
            n = 0
            while not going.is_set():
                with contextlib.suppress(exceptions.ServiceBusError):
                    with client.get_queue_sender("restarts") as sender:
                        while not going.is_set():
                            sender.send_messages(ServiceBusMessage(f"{i}/{n}"))
                            acknowledged.add(f"{i}/{n}")
                            progress[i].set()
                            n += 1
            client.close()

        threads = [threading.Thread(target=send, args=(i,), daemon=True) for i in range(len(progress))]
        for t in threads:
            t.start()
        for restart in range(3):
            for p in progress:
                p.clear()
                self.assertTrue(p.wait(30), "a sender hangs")
            if restart < 2:
                broker.terminate()
                broker.start()
        going.set()
        for t in threads:
            t.join(30)
        with ServiceBusClient.from_connection_string(connection(), connection_verify=broker.ca) as client:
            with client.get_queue_receiver("restarts", receive_mode=ServiceBusReceiveMode.RECEIVE_AND_DELETE) as receiver:
                left = set(acknowledged)
                while left:
                    some = receiver.receive_messages(max_message_count=500, max_wait_time=PATIENCE)
                    self.assertTrue(some, f"{len(left)} messages are lost")
                    left -= set(bodies(some))
