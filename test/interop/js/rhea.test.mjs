// SPDX-License-Identifier: Apache-2.0

// The broker as a plain AMQP 1.0 broker, seen by rhea: no tokens, a login with a
// rule's name and key.

import assert from "node:assert/strict";
import { once } from "node:events";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import rhea from "rhea";
import { Broker, key, keyName } from "./broker.mjs";

const queues = [
  "name: plain", "name: settled", "name: credit", "name: drain", "name: released", "name: modified, maxDeliveryCount: 2",
  "name: rejected", "name: priorities", "name: work", "name: answers, requiresSession: true", "name: many",
];

let broker;
before(async () => { broker = await Broker.start(queues); });
after(async () => { await broker.stop(); });

let connection;
beforeEach(async () => { connection = await connect(); });
afterEach(async () => { await close(connection); });

async function connect(password = key) {
  const container = rhea.create_container();
  const c = container.connect({ host: "127.0.0.1", port: broker.port, username: keyName, password, reconnect: false });
  const [outcome] = await Promise.race([
    once(c, "connection_open").then(() => ["open"]),
    once(c, "connection_error").then(([e]) => [e.error]),
    once(c, "disconnected").then(([e]) => [e.error ?? new Error("disconnected")]),
  ]);
  if (outcome !== "open") throw outcome;
  return c;
}

async function close(c) {
  if (!c.is_open()) return;
  c.close();
  await once(c, "connection_close");
}

// opened waits for a link, or throws the reason it was refused for.
async function opened(link, kind) {
  const refused = once(link, `${kind}_error`).then(() => { throw link.error; });
  refused.catch(() => {}); // it loses the race when the link opens
  await Promise.race([once(link, `${kind}_open`), refused]);
  // A refusal is an attach that a detach with the reason follows at once.
  await new Promise((resolve) => setImmediate(resolve));
  if (link.error) throw link.error;
  return link;
}

const sender = (target, c = connection) => opened(c.open_sender({ target }), "sender");

// receiver opens a link without credit; settlement is the test's.
const receiver = (options, c = connection) => opened(c.open_receiver({ credit_window: 0, autoaccept: false, ...options }), "receiver");

// send sends a message and waits for its outcome.
async function send(link, message) {
  if (!link.sendable()) await once(link, "sendable");
  const delivery = link.send(message);
  return new Promise((resolve, reject) => {
    const check = (context) => {
      if (context.delivery !== delivery) return;
      link.removeListener("settled", check);
      link.removeListener("rejected", check);
      if (delivery.remote_state && rhea.message.is_rejected(delivery.remote_state)) reject(delivery.remote_state.error);
      else resolve();
    };
    link.on("settled", check);
    link.on("rejected", check);
  });
}

// take gives credit for n messages and waits for them.
function take(link, n) {
  return new Promise((resolve, reject) => {
    const out = [];
    const timer = setTimeout(() => reject(new Error(`received ${out.length} of ${n} messages`)), 8000);
    const collect = (context) => {
      out.push(context);
      if (out.length < n) return;
      clearTimeout(timer);
      link.removeListener("message", collect);
      resolve(out);
    };
    link.on("message", collect);
    link.add_credit(n);
  });
}

const text = (body) => (body?.typecode === 0x75 ? String(body.content) : String(body));
const bodies = (contexts) => contexts.map((c) => text(c.message.body)).join(" ");

describe("rhea", () => {
  it("sends, receives and accepts", async () => {
    const s = await sender("plain");
    await send(s, { message_id: "m1", subject: "greeting", application_properties: { tenant: "contoso" }, body: "hello", footer: { sum: 7 } });
    const r = await receiver({ source: "plain" });
    const [{ message, delivery }] = await take(r, 1);
    assert.deepEqual([message.message_id, message.subject, message.application_properties.tenant, message.body, message.footer],
      ["m1", "greeting", "contoso", "hello", { sum: 7 }]);
    delivery.accept();
    const again = await receiver({ source: "plain" });
    again.drain = true;
    again.add_credit(1);
    await once(again, "receiver_drained");
  });

  it("receives settled messages and forgets them", async () => {
    const s = await sender("settled");
    for (const body of ["a", "b"]) await send(s, { body });
    const r = await receiver({ source: "settled", snd_settle_mode: 1 });
    const got = await take(r, 2);
    assert.equal(bodies(got), "a b");
    assert.ok(got.every(({ delivery }) => delivery.remote_settled));
  });

  it("gets no more than its credit", async () => {
    const s = await sender("credit");
    for (let i = 0; i < 5; i++) await send(s, { body: `m${i}` });
    const r = await receiver({ source: "credit" });
    const first = await take(r, 2);
    let surplus = 0;
    r.on("message", () => { surplus++; });
    await send(s, { body: "m5" }); // a round trip: nothing else came meanwhile
    assert.equal(surplus, 0);
    r.removeAllListeners("message");
    const rest = await take(r, 4);
    assert.equal(bodies([...first, ...rest]), "m0 m1 m2 m3 m4 m5");
    for (const { delivery } of [...first, ...rest]) delivery.accept();
  });

  it("drains", async () => {
    const s = await sender("drain");
    await send(s, { body: "only" });
    const r = await receiver({ source: "drain" });
    const got = [];
    r.on("message", (context) => { got.push(context); context.delivery.accept(); });
    r.drain = true;
    r.add_credit(10);
    await once(r, "receiver_drained");
    assert.equal(bodies(got), "only");
    assert.equal(r.credit, 0);
  });

  it("releases without counting", async () => {
    const s = await sender("released");
    await send(s, { body: "a" });
    const r = await receiver({ source: "released" });
    const [first] = await take(r, 1);
    first.delivery.release();
    const [second] = await take(r, 1);
    assert.equal(second.message.delivery_count ?? 0, 0);
    second.delivery.accept();
  });

  it("counts what it modifies, up to the dead letter queue", async () => {
    const s = await sender("modified");
    await send(s, { body: "poison" });
    const r = await receiver({ source: "modified" });
    for (let i = 0; i < 2; i++) {
      const [{ message, delivery }] = await take(r, 1);
      assert.equal(message.delivery_count ?? 0, i);
      delivery.modified({ delivery_failed: true });
    }
    const dead = await receiver({ source: "modified/$DeadLetterQueue" });
    const [{ message, delivery }] = await take(dead, 1);
    assert.equal(message.application_properties.DeadLetterReason, "MaxDeliveryCountExceeded");
    delivery.accept();
  });

  it("rejects to the dead letter queue", async () => {
    const s = await sender("rejected");
    await send(s, { body: "bad" });
    const r = await receiver({ source: "rejected" });
    const [first] = await take(r, 1);
    first.delivery.reject({ condition: "app:bad", description: "not good" });
    const dead = await receiver({ source: "rejected/$DeadLetterQueue" });
    const [{ message, delivery }] = await take(dead, 1);
    assert.equal(message.body, "bad");
    delivery.accept();
  });

  it("orders by the header's priority", async () => {
    const s = await sender("priorities");
    for (const priority of [0, 4, 9, 255, 4, 9]) await send(s, { priority, body: String(priority) });
    await send(s, { body: "unset" });
    const r = await receiver({ source: "priorities" });
    const got = await take(r, 7);
    assert.equal(bodies(got), "255 9 9 4 4 unset 0");
    for (const { delivery } of got) delivery.accept();
  });

  it("asks and answers over a dynamic node", async () => {
    const worker = await connect();
    const served = (async () => {
      const requests = await receiver({ source: "work" }, worker);
      const [{ message, delivery }] = await take(requests, 1);
      const out = await sender(message.reply_to, worker);
      await send(out, { correlation_id: message.message_id, body: message.body.toUpperCase() });
      delivery.accept();
    })();
    const inbox = await receiver({ source: { dynamic: true } });
    assert.ok(inbox.source.address);
    const s = await sender("work");
    await send(s, { message_id: "q1", reply_to: inbox.source.address, body: "ping" });
    const [{ message, delivery }] = await take(inbox, 1);
    assert.deepEqual([message.correlation_id, message.body], ["q1", "PING"]);
    delivery.accept();
    await served;
    await close(worker);
  });

  it("answers to a session of a queue", async () => {
    const s = await sender("answers");
    await send(s, { group_id: "me", correlation_id: "q2", body: "pong" });
    const r = await receiver({ source: { address: "answers", filter: { "com.microsoft:session-filter": "me" } } });
    const [{ message, delivery }] = await take(r, 1);
    assert.deepEqual([message.correlation_id, message.group_id, message.body], ["q2", "me", "pong"]);
    delivery.accept();
  });

  it("keeps the order of a thousand messages in flight", async () => {
    const n = 1000;
    const s = await sender("many");
    let sent = 0;
    let accepted = 0;
    await new Promise((resolve) => {
      const fill = () => { while (sent < n && s.sendable()) s.send({ body: sent++ }); };
      s.on("sendable", fill);
      s.on("accepted", () => { if (++accepted === n) resolve(); else fill(); });
      fill();
    });
    const r = await receiver({ source: "many" });
    const got = await take(r, n);
    assert.deepEqual(got.map(({ message }) => message.body), [...Array(n).keys()]);
    for (const { delivery } of got) delivery.accept();
  });

  it("is refused with a wrong key", async () => {
    await assert.rejects(connect("wrong"), (e) => /auth/i.test(`${e.condition} ${e.name} ${e.message} ${e.description}`));
  });

  it("is told that a queue does not exist", async () => {
    await assert.rejects(sender("no-such-queue"), (e) => e.condition === "amqp:not-found");
    await assert.rejects(receiver({ source: "no-such-queue" }), (e) => e.condition === "amqp:not-found");
  });
});
