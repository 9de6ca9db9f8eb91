// SPDX-License-Identifier: Apache-2.0

// What users of the Event Hubs SDK for JavaScript do, against the real broker.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { EventEmitter } from "node:events";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { EventHubBufferedProducerClient, EventHubConsumerClient, EventHubProducerClient, earliestEventPosition, latestEventPosition } from "@azure/event-hubs";
import rhea from "rhea";
import { Broker, key, keyName } from "./broker.mjs";
import { impatient, patient, until, withHub } from "./hub.mjs";

const hubs = [
  "name: any, partitionCount: 4", "name: one, partitionCount: 4", "name: keys, partitionCount: 8", "name: single, partitionCount: 1",
  "name: refused, partitionCount: 2", "name: buffered, partitionCount: 4", "name: idempotent, partitionCount: 2", "name: idempotent-restart, partitionCount: 1",
  "name: positions, partitionCount: 2", "name: latest, partitionCount: 1", "name: tracking, partitionCount: 1",
  "name: groups, partitionCount: 1, consumerGroups: [audit]", "name: properties, partitionCount: 3", "name: bodies, partitionCount: 1",
  "name: steal, partitionCount: 1", "name: same, partitionCount: 1", "name: lower, partitionCount: 1", "name: mixed, partitionCount: 1",
  "name: five, partitionCount: 1, consumerGroups: [audit]", "name: unknown, partitionCount: 2", "name: oversize, partitionCount: 1",
  "name: secure-transport, partitionCount: 1", "name: restart, partitionCount: 1",
];

let broker;
before(async () => { broker = await Broker.start([], hubs); });
after(async () => { await broker.stop(); });

const hub = (name, test, options) => withHub(broker.connectionString(), name, test, options);
const event = (body) => ({ body });
const numbers = (from, to) => Array.from({ length: to - from }, (_, i) => from + i);

// last returns the last sequence number of each partition.
async function last(producer) {
  const ids = await producer.getPartitionIds();
  const all = await Promise.all(ids.map((id) => producer.getPartitionProperties(id)));
  return Object.fromEntries(all.map((p) => [p.partitionId, p.lastEnqueuedSequenceNumber]));
}

describe("producers", { concurrency: true }, () => {
  it("spread batches to the hub", () => hub("any", async ({ producer, read }) => {
    for (let i = 0; i < 8; i++) {
      const batch = await producer.createBatch();
      for (const part of ["a", "b"]) assert.ok(batch.tryAdd(event(i + part)));
      await producer.sendBatch(batch);
    }
    assert.deepEqual(await last(producer), { 0: 3, 1: 3, 2: 3, 3: 3 });
    for (const partition of ["0", "1", "2", "3"]) {
      const reader = read(partition);
      await until(reader, "four events", () => reader.events.length === 4);
      const [a, b, c, d] = reader.bodies();
      assert.deepEqual([a[0] + "b", c[0] + "b"], [b, d]);
    }
  }));

  it("send to one partition, as batch and as array", () => hub("one", async ({ producer, read }) => {
    const batch = await producer.createBatch({ partitionId: "2" });
    assert.ok(batch.tryAdd(event("a")));
    await producer.sendBatch(batch);
    await producer.sendBatch(["b", "c"].map(event), { partitionId: "2" });
    await read("2").wants("a", "b", "c");
    assert.deepEqual(await last(producer), { 0: -1, 1: -1, 2: 2, 3: -1 });
  }));

  it("send by key to the partition that the SDK computes", () => hub("keys", async ({ producer, read }) => {
    // The buffered producer hashes keys itself; the broker hashes those of the other.
    const keys = ["", ...numbers(0, 60).map((i) => `key ${i}`), "ключ", "x".repeat(100)].slice(1);
    const homes = {};
    const buffered = new EventHubBufferedProducerClient(broker.connectionString(), "keys", {
      ...impatient, maxWaitTimeInMs: 1,
      onSendEventsSuccessHandler: ({ partitionId, events }) => { for (const e of events) homes[e.body] = partitionId; },
      onSendEventsErrorHandler: ({ error }) => assert.fail(error),
    });
    for (const k of keys) await buffered.enqueueEvent(event(k), { partitionKey: k });
    await buffered.close();
    assert.equal(Object.keys(homes).length, keys.length);
    for (const k of keys) await producer.sendBatch([event("again " + k)], { partitionKey: k });
    for (const [partition, number] of Object.entries(await last(producer))) {
      const reader = read(partition);
      await until(reader, "all events of a partition", () => reader.events.length === number + 1);
      for (const e of reader.events) {
        assert.equal(homes[e.body.replace("again ", "")], partition, `${e.body} is in partition ${partition}`);
        // The buffered producer sends to a partition, without the key.
        if (e.body.startsWith("again")) assert.equal(e.partitionKey, e.body.replace("again ", ""));
      }
    }
  }));

  it("send single events", () => hub("single", async ({ producer, read }) => {
    for (const body of ["a", "b", "c"]) await producer.sendBatch([event(body)]);
    await read("0").wants("a", "b", "c");
  }));

  it("buffer events", () => hub("buffered", async ({ producer, read }) => {
    const told = [];
    const buffered = new EventHubBufferedProducerClient(broker.connectionString(), "buffered", {
      ...impatient, maxWaitTimeInMs: 10,
      onSendEventsSuccessHandler: ({ events }) => told.push(...events),
      onSendEventsErrorHandler: ({ error }) => assert.fail(error),
    });
    await buffered.enqueueEvents(numbers(0, 500).map(event));
    await buffered.enqueueEvents(numbers(500, 600).map(event), { partitionId: "3" });
    await buffered.flush();
    assert.equal(told.length, 600);
    await buffered.close();
    const seen = [];
    for (const [partition, number] of Object.entries(await last(producer))) {
      const reader = read(partition);
      await until(reader, "all events of a partition", () => reader.events.length === number + 1);
      assert.ok(number >= 0, `partition ${partition} is empty`);
      seen.push(...reader.bodies());
      if (partition === "3") assert.deepEqual(reader.bodies().filter((b) => b >= 500), numbers(500, 600));
    }
    assert.deepEqual(seen.sort((a, b) => a - b), numbers(0, 600));
  }));

  it("are refused a key together with a partition", () => hub("refused", async ({ producer, read }) => {
    await assert.rejects(producer.sendBatch([event("a")], { partitionId: "0", partitionKey: "k" }), /cannot both be specified/);
    // The SDK does not let it come to that. A plain AMQP client does.
    const outcome = await rawSend("refused/Partitions/0", { message_annotations: { "x-opt-partition-key": "k" }, body: rhea.message.data_section(Buffer.from("keyed")) });
    assert.notEqual(outcome, "accepted");
    await producer.sendBatch([event("plain")], { partitionId: "0" });
    await read("0").wants("plain");
  }));

  it("are refused a batch that is too large", async () => {
    const large = "x".repeat(700_000);
    // The link ends with it. A client that opens another leaves a timer behind, and so does not end.
    await hub("oversize", ({ producer }) => assert.rejects(producer.sendBatch([event(large), event(large)]), { code: "MessageTooLargeError" }));
    await hub("oversize", async ({ producer, read }) => {
      const batch = await producer.createBatch();
      assert.ok(batch.maxSizeInBytes >= 1_000_000, `${batch.maxSizeInBytes}`);
      assert.ok(batch.tryAdd(event(large)));
      assert.ok(!batch.tryAdd(event(large)));
      await producer.sendBatch(batch);
      await read("0").wants(large);
    });
  });

  it("are refused an unknown hub or partition", async () => {
    await hub("unknown", async ({ producer }) => {
      await assert.rejects(producer.sendBatch([event("a")], { partitionId: "2" }));
      await assert.rejects(producer.getPartitionProperties("2"));
    });
    await hub("no-such-hub", async ({ producer }) => {
      await assert.rejects(producer.sendBatch([event("a")]), (e) => e.code === "MessagingEntityNotFoundError");
      await assert.rejects(producer.getEventHubProperties());
    });
  });
});

// rawSend sends one message with rhea and returns its outcome.
function rawSend(address, message) {
  const container = rhea.create_container();
  const connection = container.connect({ host: "127.0.0.1", port: broker.port, username: keyName, password: key, reconnect: false });
  return new Promise((resolve) => {
    const sender = connection.open_sender(address);
    connection.on("sendable", ({ sender }) => sender.send(message));
    for (const outcome of ["accepted", "rejected", "released", "modified", "sender_error", "connection_error", "disconnected"]) {
      connection.on(outcome, () => resolve(outcome));
    }
    void sender;
  }).finally(() => connection.close());
}

describe("idempotent producers", { concurrency: true }, () => {
  const idempotent = (name, options) => new EventHubBufferedProducerClient(broker.connectionString(), name, {
    maxWaitTimeInMs: 1, enableIdempotentRetries: true, ...options,
  });

  it("publish each event once", () => hub("idempotent", async ({ producer, read }) => {
    const errors = [];
    const client = idempotent("idempotent", { ...impatient, onSendEventsErrorHandler: ({ error }) => errors.push(error) });
    for (const i of numbers(0, 50)) await client.enqueueEvent(event(i), { partitionId: "1" });
    await client.close();
    assert.deepEqual(errors, []);
    await read("1").wants(...numbers(0, 50));
    assert.deepEqual(await last(producer), { 0: -1, 1: 49 });
  }));

  it("publish each event once although the broker is killed", async () => {
    const own = await Broker.start([], hubs);
    try {
      const errors = [];
      let sent = 0;
      const told = new EventEmitter();
      const client = new EventHubBufferedProducerClient(own.connectionString(), "idempotent-restart", {
        ...patient, maxWaitTimeInMs: 1, enableIdempotentRetries: true,
        onSendEventsSuccessHandler: ({ events }) => { sent += events.length; told.emit("change"); },
        onSendEventsErrorHandler: ({ error }) => { errors.push(error); told.emit("change"); },
      });
      const count = 300;
      const enqueue = (async () => {
        for (const i of numbers(0, count)) {
          await client.enqueueEvent(event(i), { partitionId: "0" });
          if (i % 10 === 0) await client.flush();
        }
        await client.flush();
      })();
      for (const kill of [40, 120]) {
        await until(told, `${kill} sent`, () => sent >= kill || errors.length > 0);
        await own.kill();
        await own.run();
      }
      await enqueue;
      await until(told, "all sent", () => sent === count || errors.length > 0, 40_000);
      assert.deepEqual(errors, []);
      await client.close();
      await withHub(own.connectionString(), "idempotent-restart", async ({ read }) => { await read("0").wants(...numbers(0, count)); });
    } finally {
      await own.stop();
    }
  });
});

describe("consumers", { concurrency: true }, () => {
  it("read from all positions", () => hub("positions", async ({ producer, read }) => {
    const count = 9;
    const bodies = numbers(0, count);
    await producer.sendBatch([event("of another partition")], { partitionId: "0" });
    for (let i = 0; i < count; i += 3) await producer.sendBatch(numbers(i, i + 3).map(event), { partitionId: "1" });
    const from = async (startPosition, want) => {
      const reader = read("1", { startPosition });
      const events = await reader.wants(...want);
      await reader.close(); // there may be five
      return events;
    };
    const events = await from(earliestEventPosition, bodies);
    for (const [i, e] of events.entries()) {
      assert.equal(e.sequenceNumber, i);
      assert.equal(typeof e.offset, "string");
      assert.ok(e.enqueuedTimeUtc instanceof Date);
    }
    for (const i of [0, 1, 5, 7]) {
      const { sequenceNumber, offset, enqueuedTimeUtc } = events[i];
      await from({ sequenceNumber, isInclusive: true }, bodies.slice(i));
      await from({ sequenceNumber }, bodies.slice(i + 1));
      await from({ offset, isInclusive: true }, bodies.slice(i));
      await from({ offset }, bodies.slice(i + 1));
      const after = bodies.filter((b) => events[b].enqueuedTimeUtc > enqueuedTimeUtc); // batches may share a millisecond
      if (after.length > 0) await from({ enqueuedOn: enqueuedTimeUtc }, after);
      await from({ enqueuedOn: enqueuedTimeUtc.getTime() - 1 }, bodies.filter((b) => events[b].enqueuedTimeUtc > enqueuedTimeUtc.getTime() - 1));
    }
    await from({ enqueuedOn: new Date(-1) }, bodies);
  }));

  it("read from the end", () => hub("latest", async ({ producer, read }) => {
    await producer.sendBatch([event("old"), event("old")]);
    const reader = read("0", { startPosition: latestEventPosition });
    await until(reader, "opened", () => reader.opened);
    // It says so before the link is open: events are sent until the first comes.
    for (let n = 0; reader.events.length === 0; n++) {
      await producer.sendBatch([event(`new ${n}`)]);
      assert.deepEqual(reader.errors, []);
    }
    assert.match(reader.bodies()[0], /^new/);
  }));

  it("are told the last enqueued event", () => hub("tracking", async ({ producer, read }) => {
    await producer.sendBatch(["a", "b", "c"].map(event));
    const reader = read("0", { trackLastEnqueuedEventProperties: true });
    await reader.wants("a", "b", "c");
    await until(reader, "told", () => reader.last?.sequenceNumber === 2);
    assert.equal(reader.last.offset, reader.events[2].offset);
    assert.deepEqual(reader.last.enqueuedOn, reader.events[2].enqueuedTimeUtc);
    assert.ok(reader.last.retrievedOn instanceof Date);
  }));

  it("read the same in all groups", () => hub("groups", async ({ producer, read }) => {
    await producer.sendBatch(["a", "b"].map(event));
    await Promise.all(["$Default", "$default", "audit", "Audit"].map((group) => read("0", { group }).wants("a", "b")));
  }));

  it("see properties", () => hub("properties", async ({ producer, read }) => {
    const properties = await producer.getEventHubProperties();
    assert.equal(properties.name, "properties");
    assert.deepEqual(properties.partitionIds, ["0", "1", "2"]);
    assert.ok(properties.createdOn instanceof Date && properties.createdOn.getTime() <= Date.now());
    const empty = await producer.getPartitionProperties("1");
    assert.deepEqual([empty.isEmpty, empty.lastEnqueuedSequenceNumber, empty.partitionId, empty.eventHubName], [true, -1, "1", "properties"]);
    await producer.sendBatch(["a", "b"].map(event), { partitionId: "1" });
    const [, b] = await read("1").wants("a", "b");
    const full = await producer.getPartitionProperties("1");
    assert.deepEqual([full.isEmpty, full.beginningSequenceNumber, full.lastEnqueuedSequenceNumber, full.lastEnqueuedOffset, full.lastEnqueuedOnUtc],
      [false, 0, 1, b.offset, b.enqueuedTimeUtc]);
    const consumer = new EventHubConsumerClient("$Default", broker.connectionString(), "properties", impatient);
    assert.deepEqual(await consumer.getPartitionProperties("1"), full);
    assert.deepEqual(await consumer.getPartitionIds(), ["0", "1", "2"]);
    await consumer.close();
  }));

  it("get back what was sent", () => hub("bodies", async ({ producer, read }) => {
    const when = new Date(1_700_000_000_000);
    const sent = [
      { body: "text", contentType: "text/plain", correlationId: "c-1", messageId: "m-1", properties: { text: "ä€", number: 5, fraction: 1.5, yes: true, when } },
      { body: { nested: [1, "two", { three: null }] }, contentType: "application/json" },
      { body: Buffer.from([0, 1, 2, 255]) },
      { body: 42 }, { body: true }, { body: null }, { body: "" }, { body: [] },
      { body: "x".repeat(200_000) },
    ];
    await producer.sendBatch(sent);
    const annotated = [
      { bodyType: "value", body: "a value" }, { bodyType: "value", body: 7 },
      { bodyType: "sequence", body: [["a", 1], ["b"]] }, { bodyType: "data", body: Buffer.from("data") },
    ].map((m) => ({
      ...m,
      properties: { messageId: "annotated", subject: "s", to: "t", replyTo: "r", groupId: "g", correlationId: "c", contentEncoding: "e" },
      applicationProperties: { a: "b" }, messageAnnotations: { "x-opt-mine": "kept" }, footer: { "x-foot": "note" },
    }));
    await producer.sendBatch(annotated);
    const reader = read("0");
    await until(reader, "all", () => reader.events.length === sent.length + annotated.length);
    assert.deepEqual(reader.errors, []);
    for (const [i, want] of sent.entries()) {
      const got = reader.events[i];
      assert.deepEqual(got.body, want.body);
      for (const field of ["contentType", "correlationId", "messageId"]) assert.deepEqual(got[field], want[field], field);
      for (const [name, value] of Object.entries(want.properties ?? {})) {
        // The SDK gives dates back as numbers.
        assert.equal(value instanceof Date ? Number(got.properties[name]) : got.properties[name], value instanceof Date ? value.getTime() : value, name);
      }
    }
    for (const [i, want] of annotated.entries()) {
      const raw = reader.events[sent.length + i].getRawAmqpMessage();
      assert.equal(raw.bodyType, want.bodyType);
      assert.deepEqual(raw.body.content ?? raw.body, want.body); // some are sections of rhea
      for (const [name, value] of Object.entries(want.properties)) assert.equal(raw.properties[name], value, name);
      assert.deepEqual(raw.applicationProperties, want.applicationProperties);
      assert.equal(raw.messageAnnotations["x-opt-mine"], "kept");
      assert.deepEqual(raw.footer, want.footer);
    }
  }));

  it("are refused what does not exist", async () => {
    await hub("unknown", async ({ read }) => {
      await read("0", { group: "no-such-group" }).refused(/not ?found/i);
      await read("2").refused(/partition/i);
      await read("0", { startPosition: { offset: "nonsense" } }).refused(/offset/i);
    });
    await hub("no-such-hub", async ({ read }) => { await read("0").refused(/not ?found/i); });
  });
});

// Level 0 is none to this SDK, except in its processors.
describe("owner levels", { concurrency: true }, () => {
  const stolen = async (reader) => {
    await until(reader, "stolen", () => reader.closed === "OwnershipLost" || reader.errors.length > 0);
    assert.equal(reader.errors[0]?.code, "ReceiverDisconnectedError");
  };

  it("steal from lower ones", () => hub("steal", async ({ producer, read }) => {
    await producer.sendBatch([event("a")]);
    const first = read("0", { ownerLevel: 1 });
    await first.wants("a");
    const second = read("0", { ownerLevel: 2 });
    await second.wants("a");
    await stolen(first);
    await producer.sendBatch([event("b")]);
    await second.wants("a", "b");
  }));

  it("steal from equal ones", () => hub("same", async ({ producer, read }) => {
    await producer.sendBatch([event("a")]);
    const first = read("0", { ownerLevel: 1 });
    await first.wants("a");
    const second = read("0", { ownerLevel: 1 });
    await second.wants("a");
    await stolen(first);
  }));

  it("are refused when lower, or none, beside a higher one", () => hub("lower", async ({ producer, read }) => {
    await producer.sendBatch([event("a")]);
    const holder = read("0", { ownerLevel: 5 });
    await holder.wants("a");
    assert.equal((await read("0", { ownerLevel: 4 }).refused(/higher epoch '5' already exists/)).code, "ReceiverDisconnectedError");
    assert.equal((await read("0").refused(/non-epoch receiver is not allowed/)).code, "ReceiverDisconnectedError");
    await producer.sendBatch([event("b")]);
    await holder.wants("a", "b");
  }));

  it("disconnect readers without one", () => hub("mixed", async ({ producer, read }) => {
    await producer.sendBatch([event("a")]);
    const readers = [read("0"), read("0")];
    for (const r of readers) await r.wants("a");
    await read("0", { ownerLevel: 1 }).wants("a");
    for (const r of readers) await stolen(r);
  }));

  it("may be missing on five readers, and not on six", () => hub("five", async ({ producer, read }) => {
    await producer.sendBatch([event("a")]);
    const readers = numbers(0, 5).map(() => read("0"));
    for (const r of readers) await r.wants("a");
    await read("0").refused(/maximum number of allowed receivers per partition in a consumer group which is 5/);
    await read("0", { group: "audit" }).wants("a");
    await producer.sendBatch([event("b")]);
    for (const r of readers) await r.wants("a", "b");
  }));
});

describe("transports", { concurrency: true }, () => {
  const run = promisify(execFile);
  const program = fileURLToPath(new URL("./secure-hub.mjs", import.meta.url));
  for (const transport of ["tls", "websocket"]) {
    it(transport, async () => {
      const { stdout } = await run(process.execPath, [program, transport, broker.secureConnectionString(), "secure-transport"],
        { env: { ...process.env, NODE_EXTRA_CA_CERTS: broker.ca }, timeout: 30_000 });
      assert.equal(stdout, `over ${transport}\n`);
    });
  }
});

describe("a broker that is killed", () => {
  it("loses nothing, and readers go on where they were", async () => {
    const own = await Broker.start([], hubs);
    try {
      await withHub(own.connectionString(), "restart", async ({ producer, read }) => {
        const reader = read("0", { options: patient });
        let acked = 0;
        const told = new EventEmitter();
        let stop = false;
        const load = (async () => {
          for (; !stop; acked++, told.emit("change")) await producer.sendBatch([event(acked)]);
        })();
        for (let kill = 0, from = 0; kill < 3; kill++, from = acked) {
          await until(told, "sent", () => acked >= from + 30);
          await own.kill();
          await own.run();
        }
        const from = acked;
        await until(told, "sent", () => acked >= from + 30);
        stop = true;
        await load;
        await until(reader, () => `read: ${reader.events.length} of ${acked}`, () => reader.events.at(-1)?.body === acked - 1, 40_000);
        // A retried event may have been stored twice; numbers are dense, and none is skipped or read again.
        assert.deepEqual(reader.events.map((e) => e.sequenceNumber), numbers(0, reader.events.length));
        assert.deepEqual([...new Set(reader.bodies())], numbers(0, acked));
      }, patient);
    } finally {
      await own.stop();
    }
  });
});
