# SPDX-License-Identifier: Apache-2.0
"""The broker as a plain AMQP 1.0 broker, seen by Qpid Proton."""

import threading
import unittest

from proton import ConnectionException, Described, Message, Timeout, symbol, ulong
from proton import Terminus
from proton.reactor import Copy, Filter, Selector, SenderOption
from proton.utils import BlockingConnection, LinkDetached, SyncRequestResponse

from broker import Broker

QUEUES = [
    "name: plain", "name: outcomes", "name: rejected", "name: modified, maxDeliveryCount: 2",
    "name: priorities", "name: urgent", "name: work", "name: answers, requiresSession: true",
    "name: sessions, requiresSession: true", "name: properties", "name: large", "name: many", "name: restart",
    "name: selected", "name: copied", "name: untransacted",
]

PATIENCE = 10  # seconds that anything may take

# The login is a name and a key in clear text, which Proton sends over an
# unencrypted connection only when told to.
LOGIN = {"allowed_mechs": "PLAIN", "allow_insecure_mechs": True}


def setUpModule():
    global broker
    broker = Broker(QUEUES)


def tearDownModule():
    broker.stop()


class SessionFilter(Filter):
    """Asks for the messages of one session."""

    def __init__(self, session):
        super().__init__({symbol("com.microsoft:session-filter"):
                          Described(ulong(0x137000000C), session)})


class Coordinator(SenderOption):
    """Asks for a link that controls transactions."""

    def apply(self, link):
        link.target.type = Terminus.COORDINATOR


class ProtonTest(unittest.TestCase):
    def setUp(self):
        self.connection = self.connect()

    def connect(self):
        connection = BlockingConnection(broker.url(), timeout=PATIENCE, **LOGIN)
        self.addCleanup(connection.close)
        return connection

    def send(self, queue, *messages):
        sender = self.connection.create_sender(queue)
        for m in messages:
            sender.send(m if isinstance(m, Message) else Message(body=m), timeout=PATIENCE)
        sender.close()

    def take(self, receiver, n):
        """Receives n messages and accepts them."""
        out = []
        for _ in range(n):
            out.append(receiver.receive(timeout=PATIENCE))
            receiver.accept()
        return out

    def assertEmpty(self, queue):
        receiver = self.connection.create_receiver(queue, credit=1)
        with self.assertRaises(Timeout):
            receiver.receive(timeout=0.3)
        receiver.close()

    def test_send_receive_accept(self):
        self.send("plain", "a", "b", "c")
        receiver = self.connection.create_receiver("plain", credit=10)
        self.assertEqual(["a", "b", "c"], [m.body for m in self.take(receiver, 3)])
        receiver.close()
        self.assertEmpty("plain")

    def test_selector_is_refused(self):
        """What is not applied must not be ignored: the receiver would remove every message."""
        self.send("selected", "a")
        with self.assertRaises(LinkDetached) as refused:
            self.connection.create_receiver("selected", options=Selector("colour = 'green'"))
        self.assertEqual("amqp:not-implemented", refused.exception.condition)

    def test_transactions_are_refused(self):
        """Who asks for transactions learns that there are none, and goes on without."""
        with self.assertRaises(LinkDetached) as refused:
            self.connection.create_sender(None, options=Coordinator())
        self.assertEqual("amqp:not-implemented", refused.exception.condition)
        self.send("untransacted", "a")
        self.take(self.connection.create_receiver("untransacted", credit=1), 1)

    def test_copy_is_answered_with_move(self):
        """A receiver that asks for copies learns that it gets the messages themselves."""
        receiver = self.connection.create_receiver("copied", options=Copy())
        self.assertEqual(Terminus.DIST_MODE_MOVE, receiver.link.remote_source.distribution_mode)

    def test_release_gives_back_uncounted(self):
        self.send("outcomes", "a")
        receiver = self.connection.create_receiver("outcomes", credit=1)
        receiver.receive(timeout=PATIENCE)
        receiver.release(delivered=False)
        again = receiver.receive(timeout=PATIENCE)
        self.assertEqual(("a", 0), (again.body, again.delivery_count))
        receiver.accept()

    def test_modified_counts_until_the_dead_letter_queue(self):
        self.send("modified", "poison")
        receiver = self.connection.create_receiver("modified", credit=1)
        for count in range(2):
            m = receiver.receive(timeout=PATIENCE)
            self.assertEqual(count, m.delivery_count)
            receiver.release(delivered=True)  # modified, delivery failed
        dead = self.connection.create_receiver("modified/$DeadLetterQueue", credit=1)
        m = self.take(dead, 1)[0]
        self.assertEqual("MaxDeliveryCountExceeded", m.properties["DeadLetterReason"])

    def test_reject_goes_to_the_dead_letter_queue(self):
        self.send("rejected", "bad")
        receiver = self.connection.create_receiver("rejected", credit=1)
        receiver.receive(timeout=PATIENCE)
        receiver.reject()
        dead = self.connection.create_receiver("rejected/$DeadLetterQueue", credit=1)
        self.assertEqual("bad", self.take(dead, 1)[0].body)

    def test_priorities(self):
        self.send("priorities", *[Message(body=p, priority=p) for p in (0, 9, 4, 255, 9)])
        receiver = self.connection.create_receiver("priorities", credit=5)
        self.assertEqual([255, 9, 9, 4, 0], [m.body for m in self.take(receiver, 5)])

    def test_named_priorities(self):
        self.send("urgent", *[Message(body=f"{p}-{i}", properties={"Priority": p})
                              for p in ("Low", "High") for i in range(10)])
        receiver = self.connection.create_receiver("urgent", credit=20)
        self.assertEqual([f"{p}-{i}" for p in ("High", "Low") for i in range(10)],
                         [m.body for m in self.take(receiver, 20)])

    def test_properties_round_trip(self):
        sent = Message(body=b"bytes", id="m1", subject="greeting", correlation_id="c1", reply_to="answers",
                       content_type="text/plain", group_id="g", reply_to_group_id="rg", ttl=3600.0,
                       properties={"text": "contoso", "number": 7, "flag": True, "float": 1.5})
        self.send("properties", sent)
        receiver = self.connection.create_receiver("properties", credit=1)
        got = self.take(receiver, 1)[0]
        for name in ("id", "subject", "correlation_id", "reply_to", "content_type", "group_id",
                     "reply_to_group_id", "ttl", "properties"):
            self.assertEqual(getattr(sent, name), getattr(got, name), name)
        self.assertEqual(b"bytes", bytes(got.body))
        self.assertIn(symbol("x-opt-sequence-number"), got.annotations)

    def test_large_message(self):
        body = bytes(range(256)) * 800  # 200 KiB: several frames
        self.send("large", Message(body=body))
        receiver = self.connection.create_receiver("large", credit=1)
        self.assertEqual(body, bytes(self.take(receiver, 1)[0].body))

    def test_many_messages_in_order(self):
        self.send("many", *range(300))
        receiver = self.connection.create_receiver("many", credit=50)
        self.assertEqual(list(range(300)), [m.body for m in self.take(receiver, 300)])

    def test_request_and_reply_over_a_dynamic_node(self):
        def serve():
            connection = self.connect()
            requests = connection.create_receiver("work", credit=1)
            request = requests.receive(timeout=PATIENCE)
            replies = connection.create_sender(request.reply_to)
            replies.send(Message(body=request.body.upper(), correlation_id=request.correlation_id),
                         timeout=PATIENCE)
            requests.accept()

        worker = threading.Thread(target=serve)
        worker.start()
        try:
            client = SyncRequestResponse(self.connection, "work")
            self.assertTrue(client.reply_to)
            self.assertEqual("PING", client.call(Message(body="ping")).body)
        finally:
            worker.join(PATIENCE)

    def test_reply_to_a_session_of_a_queue(self):
        self.send("answers", Message(body="for you", group_id="you"), Message(body="for me", group_id="me"))
        receiver = self.connection.create_receiver("answers", credit=1, options=SessionFilter("me"))
        m = self.take(receiver, 1)[0]
        self.assertEqual(("for me", "me"), (m.body, m.group_id))

    def test_session_has_one_receiver(self):
        self.connection.create_receiver("sessions", credit=1, options=SessionFilter("s"))
        with self.assertRaises(LinkDetached) as refused:
            self.connect().create_receiver("sessions", credit=1, options=SessionFilter("s"))
        self.assertIn("session-cannot-be-locked", str(refused.exception))

    def test_wrong_key_is_refused(self):
        with self.assertRaises(ConnectionException):
            BlockingConnection(broker.url(key="wrong"), timeout=PATIENCE, **LOGIN)

    def test_unknown_queue(self):
        with self.assertRaises(LinkDetached) as refused:
            self.connection.create_sender("no-such-queue")
        self.assertIn("amqp:not-found", str(refused.exception))

    def test_messages_survive_a_crash(self):
        self.send("restart", "kept")
        self.connection.close()
        broker.kill()
        broker.start()
        self.connection = self.connect()
        receiver = self.connection.create_receiver("restart", credit=1)
        self.assertEqual("kept", self.take(receiver, 1)[0].body)


if __name__ == "__main__":
    unittest.main()
