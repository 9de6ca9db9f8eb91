# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Event Hubs SDK share: readers that collect, and waiting."""

import threading
import time

from azure.eventhub import EventHubConsumerClient

import broker as running

PATIENCE = 20  # seconds that anything may take


def connection(key=running.KEY):
    return f"Endpoint=sb://localhost;SharedAccessKeyName={running.KEY_NAME};SharedAccessKey={key}"


class Told:
    """Something that is told by other threads, and can be waited for."""

    def __init__(self):
        self.changed = threading.Condition()

    def until(self, what, wanted, patience=PATIENCE):
        deadline = time.monotonic() + patience
        with self.changed:
            while not wanted():
                if not self.changed.wait(deadline - time.monotonic()):
                    raise AssertionError(f"not {what}: {self.state()}")


class Reader(Told):
    """Collects the events and errors of one partition."""

    def __init__(self, hub, partition, ca, group="$Default", position="-1", client_options=(), **options):
        super().__init__()
        self.events, self.errors, self.opened, self.last = [], [], False, None
        self.client = EventHubConsumerClient.from_connection_string(
            connection(), group, eventhub_name=hub, connection_verify=ca,
            **{"retry_total": 0, "load_balancing_interval": 0.3, **dict(client_options)})
        self.thread = threading.Thread(target=self.client.receive, daemon=True, kwargs=dict(
            on_event=self.on_event, partition_id=partition, starting_position=position,
            on_error=self.on_error, on_partition_initialize=self.on_initialize, **options))
        self.thread.start()

    def on_initialize(self, _):
        with self.changed:
            self.opened = True
            self.changed.notify_all()

    def on_event(self, context, event):
        with self.changed:
            self.events.append(event)
            self.last = context.last_enqueued_event_properties
            self.changed.notify_all()

    def on_error(self, _, error):
        with self.changed:
            self.errors.append(error)
            self.changed.notify_all()

    def state(self):
        return f"read {[b[:20] for b in self.bodies()]}, {self.errors[:5]}"

    def bodies(self):
        return [e.body_as_str() for e in self.events]

    def wants(self, *bodies):
        """Waits for as many events as there are bodies, and compares."""
        self.until(f"{len(bodies)} events", lambda: self.errors or len(self.events) >= len(bodies))
        if self.bodies() != list(bodies) or self.errors:
            raise AssertionError(f"want {[b[:20] for b in bodies]}: {self.state()}")
        return self.events

    def refused(self, *texts):
        """Waits for an error, which must have all those texts."""
        self.until("refused", lambda: self.errors)
        error = f"{type(self.errors[0]).__name__} {self.errors[0]}"
        for text in texts:
            if text.lower() not in error.lower():
                raise AssertionError(f"{error}, want {text}")
        return self.errors[0]

    def close(self):
        self.client.close()
        self.thread.join(PATIENCE)
