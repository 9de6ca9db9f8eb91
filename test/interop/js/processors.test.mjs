// SPDX-License-Identifier: Apache-2.0

// The processors of the Event Hubs SDK for JavaScript with its checkpoint store, which
// Azurite's blobs hold.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { createInterface } from "node:readline";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { EventHubProducerClient } from "@azure/event-hubs";
import { ContainerClient } from "@azure/storage-blob";
import { Broker } from "./broker.mjs";
import { impatient, until } from "./hub.mjs";

const partitions = 6;
const file = (name) => fileURLToPath(new URL(name, import.meta.url));

let broker;
let azurite;
let blobs; // connection string
before(async () => {
  broker = await Broker.start([], ["balanced", "greedy"].map((name) => `name: ${name}, partitionCount: ${partitions}`));
  azurite = spawn(process.execPath, [file("./azurite.mjs")], { stdio: ["pipe", "pipe", "inherit"] });
  [blobs] = await once(createInterface(azurite.stdout), "line");
});
after(async () => {
  azurite.kill("SIGKILL");
  await broker.stop();
});

// Fleet is the instances of one processor, and what they have told.
class Fleet extends EventEmitter {
  alive = new Set();
  seen = new Map(); // how often each body was
  done = {}; // checkpoint of each partition

  constructor(strategy) {
    super();
    this.strategy = strategy;
  }

  start() {
    const i = { owns: new Set(), first: {}, problems: "" };
    i.process = spawn(process.execPath, [file("./processor.mjs"), broker.connectionString(), this.strategy, blobs, this.strategy, this.strategy]);
    i.exited = once(i.process, "close");
    i.process.stderr.on("data", (text) => { i.problems += text; });
    createInterface(i.process.stdout).on("line", (line) => this.heard(i, ...line.split(" ")));
    this.alive.add(i);
    return i;
  }

  heard(i, what, partition, number, body) {
    switch (what) {
      case "claim":
        i.owns.add(partition);
        break;
      case "lost":
        i.owns.delete(partition);
        break;
      case "event":
        this.seen.set(body, (this.seen.get(body) ?? 0) + 1);
        i.first[partition] ??= Number(number);
        break;
      case "checkpoint":
        this.done[partition] = Number(number);
        break;
      default:
        assert.fail(`an instance said ${what}`);
    }
    this.emit("change");
  }

  // kill ends an instance as a crash would; stop does it politely.
  async kill(i) {
    i.process.kill("SIGKILL");
    await i.exited;
    this.alive.delete(i);
  }

  async stop(i) {
    i.process.stdin.end();
    await i.exited;
    this.alive.delete(i);
    assert.equal(i.process.exitCode, 0, i.problems);
  }

  // balanced says whether each instance owns its share and nothing is owned twice.
  balanced() {
    const owned = [...this.alive].flatMap((i) => [...i.owns]);
    return [...this.alive].every((i) => i.owns.size === partitions / this.alive.size) && new Set(owned).size === partitions;
  }

  async until(what, wanted) {
    const state = () => `${what}: ${this.seen.size} events seen, ${[...this.alive].map((i) => `${[...i.owns]} ${i.problems}`).join("; ")}`;
    await until(this, state, wanted, 60_000);
  }
}

// Three instances share six partitions; one is killed, one is added; all stop, and one
// resumes from the checkpoints of all.
describe("processors", { concurrency: true }, () => {
  for (const strategy of ["balanced", "greedy"]) {
    it(strategy, async () => {
      await new ContainerClient(blobs, strategy).create();
      const producer = new EventHubProducerClient(broker.connectionString(), strategy, impatient);
      const fleet = new Fleet(strategy);
      try {
        let sent = 0;
        const publish = async () => {
          for (let p = 0; p < partitions; p++) {
            await producer.sendBatch(Array.from({ length: 10 }, () => ({ body: String(sent++) })), { partitionId: String(p) });
          }
        };
        const settled = () => fleet.balanced() && fleet.seen.size === sent;

        await publish();
        const first = fleet.start();
        fleet.start();
        fleet.start();
        await fleet.until("three with two partitions each", settled);
        await publish();
        await fleet.kill(first); // in the middle of it
        await publish();
        await fleet.until("two with three partitions each", settled);
        fleet.start();
        await publish();
        await fleet.until("three with two partitions each again", settled);
        const last = {};
        for (const id of await producer.getPartitionIds()) last[id] = (await producer.getPartitionProperties(id)).lastEnqueuedSequenceNumber;
        await fleet.until("everything in checkpoints", () => Object.entries(last).every(([id, number]) => fleet.done[id] === number));
        await Promise.all([...fleet.alive].map((i) => fleet.stop(i)));

        await publish();
        const resumed = fleet.start();
        await fleet.until("one with all partitions", settled);
        await fleet.stop(resumed);
        assert.deepEqual(resumed.first, Object.fromEntries(Object.entries(last).map(([id, number]) => [id, number + 1])));
      } finally {
        await Promise.all([...fleet.alive].map((i) => fleet.kill(i)));
        await producer.close();
      }
    });
  }
});
