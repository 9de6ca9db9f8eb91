// SPDX-License-Identifier: Apache-2.0

// What users of the Service Bus SDK for JavaScript do, against the real broker.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { execFile } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { after, before, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { ServiceBusClient, isServiceBusError } from "@azure/service-bus";
import { Broker, key, keyName } from "./broker.mjs";

const queues = [
  "name: modes", "name: deleting", "name: batches", "name: draining", "name: subscribing",
  "name: renewing, lockDuration: 5s", "name: abandoning", "name: deferring", "name: dead-letters", "name: dead-letters-plain", "name: deferring-counts",
  "name: peeking", "name: scheduling", "name: oversize", "name: lock-lost, lockDuration: 5s",
  "name: sessions, requiresSession: true", "name: next-session, requiresSession: true",
  "name: contended, requiresSession: true", "name: session-rules, requiresSession: true",
  "name: duplicates, requiresDuplicateDetection: true, duplicateDetectionHistoryTimeWindow: 1m",
  "name: forward-source, forwardTo: forward-target", "name: forward-target",
  "name: secured", "name: secure-transport", "name: priorities", "name: header-priorities", "name: bodies",
  "name: round-trip", "name: restart", "name: restart-waiting", "name: restart-sending",
];

// Retries of the SDK wait 30 seconds; a test wants the first answer.
const impatient = { retryOptions: { maxRetries: 0, timeoutInMs: 10_000 } };

let broker;
before(async () => { broker = await Broker.start(queues); });
after(async () => { await broker.stop(); });

// withQueue runs a test with a sender and a receiver on a queue.
async function withQueue(name, test, { connectionString = broker.connectionString(), receiveMode, options = impatient } = {}) {
  const client = new ServiceBusClient(connectionString, options);
  try {
    const sender = client.createSender(name);
    const receiver = client.createReceiver(name, receiveMode ? { receiveMode } : {});
    await test({ client, sender, receiver });
  } finally {
    await client.close();
  }
}

// take receives exactly n messages.
async function take(receiver, n, maxWaitTimeInMs = 8000) {
  const out = [];
  while (out.length < n) {
    const got = await receiver.receiveMessages(n - out.length, { maxWaitTimeInMs });
    assert.notEqual(got.length, 0, `received ${out.length} messages, want ${n}`);
    out.push(...got);
  }
  return out;
}

async function empty(receiver) {
  const got = await receiver.receiveMessages(1, { maxWaitTimeInMs: 300 });
  assert.deepEqual(got.map((m) => m.body), []);
}

// within rejects when p takes too long, so that a hang is a failure with a name.
async function within(ms, p, what) {
  const late = new AbortController();
  const deadline = pause(ms, undefined, { signal: late.signal }).then(() => { throw new Error(what); });
  deadline.catch(() => {}); // it is aborted in the end
  try {
    return await Promise.race([p, deadline]);
  } finally {
    late.abort();
  }
}

const bodies = (messages) => messages.map((m) => m.body).join(" ");

const code = (expected) => (err) => {
  assert.ok(isServiceBusError(err), `${err.name}: ${err.message}`);
  assert.equal(err.code, expected, err.message);
  return true;
};

describe("messages", () => {
  it("sends and receives with peek-lock", async () => {
    await withQueue("modes", async ({ sender, receiver }) => {
      await sender.sendMessages({
        body: { hello: "world" }, messageId: "m1", subject: "greeting", contentType: "application/json", correlationId: "c1",
        replyTo: "answers", replyToSessionId: "s9", to: "you", timeToLive: 3_600_000,
        applicationProperties: { tenant: "contoso", size: 7, vip: true },
      });
      const [m] = await take(receiver, 1);
      assert.deepEqual(m.body, { hello: "world" });
      assert.deepEqual(
        [m.messageId, m.subject, m.contentType, m.correlationId, m.replyTo, m.replyToSessionId, m.to, m.timeToLive],
        ["m1", "greeting", "application/json", "c1", "answers", "s9", "you", 3_600_000]);
      assert.deepEqual({ ...m.applicationProperties }, { tenant: "contoso", size: 7, vip: true });
      assert.equal(m.deliveryCount, 0);
      assert.ok(m.lockToken && m.lockedUntilUtc > new Date() && m.enqueuedTimeUtc && m.sequenceNumber.gte(1));
      await receiver.completeMessage(m);
      await empty(receiver);
    });
  });

  it("receives and deletes", async () => {
    await withQueue("deleting", async ({ sender, receiver }) => {
      await sender.sendMessages([{ body: "a" }, { body: "b" }]);
      assert.equal(bodies(await take(receiver, 2)), "a b");
      await empty(receiver);
    }, { receiveMode: "receiveAndDelete" });
  });

  it("sends batches", async () => {
    await withQueue("batches", async ({ sender, receiver }) => {
      const batch = await sender.createMessageBatch();
      for (let i = 0; i < 100; i++) assert.ok(batch.tryAddMessage({ body: i }));
      await sender.sendMessages(batch);
      const messages = await take(receiver, 100);
      assert.deepEqual(messages.map((m) => m.body), [...Array(100).keys()]);
      await Promise.all(messages.map((m) => receiver.completeMessage(m)));
      await empty(receiver);
    });
  });

  it("drains unused credit without closing the link", async () => {
    await withQueue("draining", async ({ sender, receiver }) => {
      for (let i = 0; i < 5; i++) await empty(receiver);
      await sender.sendMessages([{ body: "a" }, { body: "b" }]);
      const messages = await take(receiver, 2);
      assert.equal(bodies(messages), "a b");
      assert.deepEqual(messages.map((m) => m.deliveryCount), [0, 0]);
      for (const m of messages) await receiver.completeMessage(m);
    });
  });

  it("subscribes", async () => {
    await withQueue("subscribing", async ({ sender, receiver }) => {
      const seen = [];
      const done = new Promise((resolve, reject) => {
        receiver.subscribe({
          processMessage: async (m) => { seen.push(m.body); if (seen.length === 20) resolve(); },
          processError: async ({ error }) => reject(error),
        }, { maxConcurrentCalls: 3 });
      });
      await sender.sendMessages([...Array(20).keys()].map((body) => ({ body })));
      await done;
      assert.deepEqual(seen.toSorted((a, b) => a - b), [...Array(20).keys()]);
    });
  });

  it("peeks", async () => {
    await withQueue("peeking", async ({ sender, receiver }) => {
      await sender.sendMessages(["a", "b", "c"].map((body) => ({ body })));
      const seen = await receiver.peekMessages(2);
      assert.equal(bodies(seen), "a b");
      assert.equal(seen[0].state, "active");
      assert.equal(bodies(await receiver.peekMessages(5)), "c");
      assert.deepEqual(await receiver.peekMessages(5), []);
      assert.equal(bodies(await receiver.peekMessages(1, { fromSequenceNumber: seen[1].sequenceNumber })), "b");
      for (const m of await take(receiver, 3)) await receiver.completeMessage(m);
    });
  });

  it("schedules and cancels", async () => {
    await withQueue("scheduling", async ({ sender, receiver }) => {
      const soon = new Date(Date.now() + 1500);
      await sender.scheduleMessages({ body: "soon" }, soon);
      const late = await sender.scheduleMessages([{ body: "x" }, { body: "y" }], new Date(Date.now() + 3_600_000));
      assert.equal(late.length, 2);
      const seen = await receiver.peekMessages(5);
      assert.deepEqual(seen.map((m) => m.state), ["scheduled", "scheduled", "scheduled"]);
      await sender.cancelScheduledMessages(late);
      const [m] = await take(receiver, 1);
      assert.equal(m.body, "soon");
      assert.ok(new Date() >= soon);
      await receiver.completeMessage(m);
      await empty(receiver);
    });
  });

  it("drops duplicates", async () => {
    await withQueue("duplicates", async ({ sender, receiver }) => {
      for (const id of ["1", "2", "1", "3", "2"]) await sender.sendMessages({ body: id, messageId: id });
      const messages = await take(receiver, 3);
      assert.equal(bodies(messages), "1 2 3");
      for (const m of messages) await receiver.completeMessage(m);
      await empty(receiver);
    });
  });

  it("forwards", async () => {
    await withQueue("forward-target", async ({ client, receiver }) => {
      await client.createSender("forward-source").sendMessages({ body: "a" });
      const [m] = await take(receiver, 1);
      assert.equal(m.body, "a");
      await receiver.completeMessage(m);
    });
  });

  it("refuses what is too large", async () => {
    await withQueue("oversize", async ({ sender, receiver }) => {
      const batch = await sender.createMessageBatch();
      assert.ok(batch.maxSizeInBytes > 0);
      assert.equal(batch.tryAddMessage({ body: Buffer.alloc(batch.maxSizeInBytes + 1) }), false);
      await assert.rejects(sender.sendMessages({ body: Buffer.alloc(1 << 20) }), code("MessageSizeExceeded"));
      const big = Buffer.alloc(200 << 10, "y"); // several frames
      await sender.sendMessages({ body: big });
      const [m] = await take(receiver, 1);
      assert.ok(big.equals(m.body));
      await receiver.completeMessage(m);
    }, { options: { retryOptions: { maxRetries: 3, retryDelayInMs: 200, timeoutInMs: 10_000 } } }); // the SDK stumbles while it replaces the link
  });

  it("keeps every kind of body and property", async () => {
    await withQueue("bodies", async ({ sender, receiver }) => {
      const kinds = [
        { bodyType: "data", body: Buffer.from("bytes") },
        { bodyType: "value", body: "text" },
        { bodyType: "value", body: 42 },
        { bodyType: "sequence", body: ["a", 1, true] },
      ];
      for (const sent of kinds) {
        await sender.sendMessages(sent);
        const [m] = await take(receiver, 1);
        assert.equal(m._rawAmqpMessage.bodyType, sent.bodyType);
        assert.deepEqual(m.body, sent.body);
        await receiver.completeMessage(m);
      }
    });
  });

  it("adds only its own annotations", async () => {
    await withQueue("round-trip", async ({ sender, receiver }) => {
      await sender.sendMessages({
        bodyType: "data", body: "x",
        header: { priority: 100, durable: true },
        messageAnnotations: { "x-opt-message-test": "annotation" },
        applicationProperties: { a: 1 },
      });
      const [m] = await take(receiver, 1);
      const raw = m._rawAmqpMessage;
      assert.deepEqual(Object.keys(raw.messageAnnotations).toSorted(),
        ["x-opt-enqueued-time", "x-opt-locked-until", "x-opt-message-test", "x-opt-sequence-number"]);
      assert.deepEqual(Object.keys(raw.deliveryAnnotations), ["x-opt-lock-token"]);
      assert.equal(raw.header.priority, 100);
      assert.equal(raw.header.durable, true);
      await receiver.completeMessage(m);
    });
  });
});

describe("settlement", () => {
  it("renews locks", async () => {
    await withQueue("renewing", async ({ client, sender }) => {
      await sender.sendMessages({ body: "a" });
      const receiver = client.createReceiver("renewing", { maxAutoLockRenewalDurationInMs: 0 });
      const [m] = await take(receiver, 1);
      for (let i = 0; i < 2; i++) { // beyond the lock's own 5 s
        await pause(3000);
        const before = m.lockedUntilUtc;
        assert.ok((await receiver.renewMessageLock(m)) > before);
      }
      await receiver.completeMessage(m);
      await empty(receiver);
    });
  });

  it("abandons with properties", async () => {
    await withQueue("abandoning", async ({ sender, receiver }) => {
      await sender.sendMessages({ body: "a", applicationProperties: { kept: "yes", changed: "old" } });
      const [m] = await take(receiver, 1);
      await receiver.abandonMessage(m, { changed: "new", added: 1 });
      const [again] = await take(receiver, 1);
      assert.equal(again.deliveryCount, 1);
      assert.deepEqual({ ...again.applicationProperties }, { kept: "yes", changed: "new", added: 1 });
      await receiver.completeMessage(again);
    });
  });

  it("defers and receives deferred", async () => {
    await withQueue("deferring", async ({ sender, receiver }) => {
      await sender.sendMessages({ body: "a" });
      const [m] = await take(receiver, 1);
      await receiver.deferMessage(m, { why: "later" });
      await empty(receiver);
      assert.equal((await receiver.peekMessages(1))[0].state, "deferred");
      const [deferred] = await receiver.receiveDeferredMessages(m.sequenceNumber);
      assert.equal(deferred.body, "a");
      assert.equal(deferred.applicationProperties.why, "later");
      await receiver.completeMessage(deferred);
    });
  });

  it("dead-letters with a reason", async () => {
    await withQueue("dead-letters", async ({ client, sender, receiver }) => {
      await sender.sendMessages({ body: "bad" });
      const [m] = await take(receiver, 1);
      await receiver.deadLetterMessage(m, { deadLetterReason: "Unreadable", deadLetterErrorDescription: "no such format", by: "test" });
      await empty(receiver);
      const dead = client.createReceiver("dead-letters", { subQueueType: "deadLetter" });
      const [d] = await take(dead, 1);
      assert.deepEqual([d.body, d.deadLetterReason, d.deadLetterErrorDescription, d.applicationProperties.by],
        ["bad", "Unreadable", "no such format", "test"]);
      await dead.completeMessage(d);
    });
  });

  // A message that is dead-lettered without a reason gets no properties for it, not even null.
  it("dead-letters without a reason", async () => {
    await withQueue("dead-letters-plain", async ({ client, sender, receiver }) => {
      const dead = client.createReceiver("dead-letters-plain", { subQueueType: "deadLetter" });
      for (const [options, want] of [
        [undefined, { kept: "yes" }],
        [{}, { kept: "yes" }],
        [{ deadLetterReason: "Unreadable" }, { kept: "yes", DeadLetterReason: "Unreadable" }],
      ]) {
        await sender.sendMessages({ body: "bad", applicationProperties: { kept: "yes" } });
        const [m] = await take(receiver, 1);
        await receiver.deadLetterMessage(m, options);
        const [d] = await take(dead, 1);
        assert.deepEqual(d.applicationProperties, want);
        await dead.completeMessage(d);
      }
    });
  });

  // Deferring counts as a delivery, and abandoning a deferred message leaves it deferred.
  it("counts deferring as a delivery", async () => {
    await withQueue("deferring-counts", async ({ sender, receiver }) => {
      await sender.sendMessages({ body: "a" });
      const [m] = await take(receiver, 1);
      assert.equal(m.deliveryCount, 0);
      await receiver.deferMessage(m);
      let [d] = await receiver.receiveDeferredMessages(m.sequenceNumber);
      assert.deepEqual([d.deliveryCount, d.state], [1, "deferred"]);
      await receiver.abandonMessage(d);
      await empty(receiver);
      [d] = await receiver.receiveDeferredMessages(m.sequenceNumber);
      assert.deepEqual([d.deliveryCount, d.state], [2, "deferred"]);
      const [seen] = await receiver.peekMessages(1);
      assert.equal(seen.state, "deferred");
      await receiver.deferMessage(d);
      [d] = await receiver.receiveDeferredMessages(m.sequenceNumber);
      assert.equal(d.deliveryCount, 3);
      await receiver.completeMessage(d);
    });
  });

  it("says when a lock is lost", async () => {
    await withQueue("lock-lost", async ({ client, sender }) => {
      await sender.sendMessages({ body: "a" });
      const [receiver, other] = [0, 1].map(() => client.createReceiver("lock-lost", { maxAutoLockRenewalDurationInMs: 0 }));
      const [first] = await take(receiver, 1);
      const [second] = await take(other, 1, 15_000); // comes when the first lock has run out
      assert.equal(second.deliveryCount, 1);
      await assert.rejects(receiver.renewMessageLock(first), code("MessageLockLost"));
      await assert.rejects(receiver.completeMessage(first), code("MessageLockLost"));
      await other.completeMessage(second);
    });
  });
});

describe("sessions", () => {
  it("accepts a named session and keeps its state", async () => {
    await withQueue("sessions", async ({ client, sender }) => {
      await sender.sendMessages([{ body: "r1", sessionId: "red" }, { body: "b1", sessionId: "blue" }, { body: "r2", sessionId: "red" }]);
      const session = await client.acceptSession("sessions", "red");
      assert.equal(session.sessionId, "red");
      assert.ok(session.sessionLockedUntilUtc > new Date());
      const messages = await take(session, 2);
      assert.equal(bodies(messages), "r1 r2");
      await session.setSessionState(Buffer.from("step 2"));
      assert.ok((await session.renewSessionLock()) > new Date());
      for (const m of messages) await session.completeMessage(m);
      await session.close();
      const again = await client.acceptSession("sessions", "red");
      assert.equal(String(await again.getSessionState()), "step 2");
      await again.close();
    });
  });

  it("accepts the next available session", async () => {
    await withQueue("next-session", async ({ client, sender }) => {
      await sender.sendMessages([{ body: "a", sessionId: "one" }, { body: "b", sessionId: "two" }]);
      const seen = [];
      for (let i = 0; i < 2; i++) {
        const session = await client.acceptNextSession("next-session");
        const [m] = await take(session, 1);
        seen.push(`${session.sessionId}: ${m.body}`);
        await session.completeMessage(m);
        await session.close();
      }
      assert.deepEqual(seen.toSorted(), ["one: a", "two: b"]);
    });
  });

  it("has one receiver for a session", async () => {
    await withQueue("contended", async ({ client, sender }) => {
      await sender.sendMessages({ body: "a", sessionId: "s" });
      const holder = await client.acceptSession("contended", "s");
      await assert.rejects(client.acceptSession("contended", "s"), code("SessionCannotBeLocked"));
      await holder.close();
      const next = await client.acceptSession("contended", "s");
      const [m] = await take(next, 1);
      assert.equal(m.deliveryCount, 0);
      await next.completeMessage(m);
      await next.close();
    });
  });

  it("refuses a plain receiver and messages without a session", async () => {
    await withQueue("session-rules", async ({ sender, receiver }) => {
      await assert.rejects(receiver.receiveMessages(1, { maxWaitTimeInMs: 2000 }), /requires sessions/);
      await assert.rejects(sender.sendMessages({ body: "x" }));
    });
  });
});

describe("security", () => {
  it("reports an unknown entity", async () => {
    await withQueue("no-such-queue", async ({ sender, receiver }) => {
      await assert.rejects(sender.sendMessages({ body: "x" }), code("MessagingEntityNotFound"));
      await assert.rejects(receiver.receiveMessages(1, { maxWaitTimeInMs: 2000 }), code("MessagingEntityNotFound"));
    });
  });

  it("refuses a wrong key", async () => {
    await withQueue("secured", async ({ sender }) => {
      await assert.rejects(sender.sendMessages({ body: "x" }), code("UnauthorizedAccess"));
    }, { connectionString: broker.connectionString({ secret: "wrong" }) });
  });

  it("refuses an expired token", async () => {
    const resource = encodeURIComponent(`sb://127.0.0.1:${broker.port}/secured`);
    const until = Math.floor(Date.now() / 1000) - 3600;
    const sig = encodeURIComponent(createHmac("sha256", key).update(`${resource}\n${until}`).digest("base64"));
    const connectionString = `Endpoint=sb://127.0.0.1:${broker.port};UseDevelopmentEmulator=true;` +
      `SharedAccessSignature=SharedAccessSignature sr=${resource}&sig=${sig}&se=${until}&skn=${keyName}`;
    await withQueue("secured", async ({ sender }) => {
      await assert.rejects(sender.sendMessages({ body: "x" }), /ExpiredToken/);
    }, { connectionString });
  });

  for (const transport of ["tls", "websocket"]) {
    it(`works over ${transport}`, async () => {
      const { stdout } = await promisify(execFile)(process.execPath,
        ["secure.mjs", transport, broker.secureConnectionString(), "secure-transport"],
        { cwd: import.meta.dirname, env: { ...process.env, NODE_EXTRA_CA_CERTS: broker.ca }, timeout: 30_000 });
      assert.equal(stdout.trim(), `over ${transport}`);
    });
  }
});

describe("priority", () => {
  it("serves ten high before ten low, each in order", async () => {
    await withQueue("priorities", async ({ sender, receiver }) => {
      const group = (Priority) => [...Array(10).keys()].map((i) => ({ body: `${Priority}-${i}`, applicationProperties: { Priority } }));
      await sender.sendMessages(group("Low"));
      await sender.sendMessages(group("High"));
      const messages = await take(receiver, 20);
      assert.deepEqual(messages.map((m) => m.body), [...group("High"), ...group("Low")].map((m) => m.body));
      for (const m of messages) await receiver.completeMessage(m);
    });
  });

  it("orders by the header's priority", async () => {
    await withQueue("header-priorities", async ({ sender, receiver }) => {
      for (const priority of [1, 200, 9, 100]) await sender.sendMessages({ bodyType: "data", body: priority, header: { priority } });
      await sender.sendMessages({ body: "plain" }); // level 4
      const messages = await take(receiver, 5);
      assert.equal(bodies(messages), "200 100 9 plain 1");
      for (const m of messages) await receiver.completeMessage(m);
    });
  });
});

describe("restart", () => {
  it("reconnects after the broker was killed", async () => {
    const options = { retryOptions: { maxRetries: 50, retryDelayInMs: 200, timeoutInMs: 10_000 } };
    await withQueue("restart", async ({ client, sender, receiver }) => {
      await sender.sendMessages({ body: "before" });
      // A subscriber that is up before and comes back after.
      const seen = new EventEmitter();
      const waiting = client.createSender("restart-waiting");
      client.createReceiver("restart-waiting").subscribe({
        processMessage: async (m) => { seen.emit(m.body); },
        processError: async () => {}, // it reports the lost connection
      });
      await Promise.all([once(seen, "up"), waiting.sendMessages({ body: "up" })]);
      await broker.kill();
      await broker.run();
      await sender.sendMessages({ body: "after" });
      const messages = await take(receiver, 2);
      assert.equal(bodies(messages), "before after");
      for (const m of messages) await receiver.completeMessage(m);
      await Promise.all([once(seen, "awaited"), waiting.sendMessages({ body: "awaited" })]);
    }, { options });
  });

  // A broker that stops answers every send before it closes. Of a close alone the SDK
  // makes nothing: a send that is under way waits for its whole minute. Errors are to be
  // expected, and are for the program to handle: the SDK does not try again by itself
  // when the connection is refused.
  it("goes on sending while the broker is stopped and started", async () => {
    const options = { retryOptions: { maxRetries: 50, retryDelayInMs: 100, mode: 0 } };
    await withQueue("restart-sending", async ({ client, receiver }) => {
      const senders = 4;
      const acknowledged = new Set();
      const progress = new EventEmitter();
      let going = true;
      const load = Array.from({ length: senders }, async (_, i) => {
        const sender = client.createSender("restart-sending");
        for (let n = 0; going; n++) {
          try {
            await sender.sendMessages({ body: `${i}/${n}` });
            acknowledged.add(`${i}/${n}`);
            progress.emit(`${i}`);
          } catch {
            await pause(50);
          }
        }
      });
      const goesOn = async () => {
        const all = Array.from({ length: senders }, (_, i) => once(progress, `${i}`));
        await within(30_000, Promise.all(all), "a sender hangs");
      };
      try {
        for (let restarts = 0; restarts < 4; restarts++) {
          await goesOn();
          await broker.terminate();
          await broker.run();
        }
        await goesOn();
      } finally {
        going = false;
      }
      await Promise.all(load);
      while (acknowledged.size > 0) {
        const messages = await receiver.receiveMessages(200, { maxWaitTimeInMs: 8000 });
        assert.notEqual(messages.length, 0, `${acknowledged.size} messages are lost`);
        for (const m of messages) acknowledged.delete(m.body);
        await Promise.all(messages.map((m) => receiver.completeMessage(m)));
      }
    }, { options });
  });
});
