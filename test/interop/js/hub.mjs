// SPDX-License-Identifier: Apache-2.0

// What the tests of the Event Hubs SDK share: readers that collect, and waiting for
// what they collect.

import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { EventHubConsumerClient, EventHubProducerClient, earliestEventPosition } from "@azure/event-hubs";

// Retries of the SDK wait 30 seconds; a test wants the first answer.
export const impatient = { retryOptions: { maxRetries: 0, timeoutInMs: 10_000 } };

// Retries that outlast a restart of the broker.
export const patient = { retryOptions: { maxRetries: 200, retryDelayInMs: 50, timeoutInMs: 2_000 } };

const patience = 20_000; // ms that anything may take

// until waits for a condition, which is looked at whenever emitter emits "change".
export async function until(emitter, what, wanted, ms = patience) {
  const late = AbortSignal.timeout(ms);
  while (!wanted()) {
    try {
      await once(emitter, "change", { signal: late });
    } catch (cause) {
      throw new Error(`not ${typeof what === "function" ? what() : what}`, { cause });
    }
  }
}

// Reader collects the events and errors of one partition.
export class Reader extends EventEmitter {
  events = [];
  errors = [];
  opened = false;
  closed = undefined; // the reason
  last = undefined; // properties of the last enqueued event

  constructor(connectionString, hub, partition, { group = "$Default", options = impatient, ...subscribe } = {}) {
    super();
    this.client = new EventHubConsumerClient(group, connectionString, hub, options);
    this.subscription = this.client.subscribe(partition, {
      processInitialize: async () => { this.opened = true; this.emit("change"); },
      processEvents: async (events, context) => {
        this.events.push(...events);
        this.last = context.lastEnqueuedEventProperties ?? this.last;
        this.emit("change");
      },
      processError: async (error) => { this.errors.push(error); this.emit("change"); },
      processClose: async (reason) => { this.closed = reason; this.emit("change"); },
    }, { startPosition: earliestEventPosition, maxWaitTimeInSeconds: 1, ...subscribe });
  }

  // wants waits for as many events as there are bodies, and compares.
  async wants(...bodies) {
    await until(this, () => `${bodies.length} events: got ${this.bodies()}, ${this.errors}`, () => this.events.length >= bodies.length || this.errors.length > 0);
    assert.deepEqual(this.bodies(), bodies);
    assert.deepEqual(this.errors, []);
    return this.events;
  }

  // refused waits for an error with that text, and returns it.
  async refused(pattern) {
    await until(this, () => `refused: got ${this.bodies()}`, () => this.errors.length > 0);
    assert.match(`${this.errors[0].code} ${this.errors[0].message}`, pattern);
    return this.errors[0];
  }

  bodies() {
    return this.events.map((e) => e.body);
  }

  async close() {
    await this.subscription.close();
    await this.client.close();
  }
}

// withHub runs a test with a producer and a function that opens readers.
export async function withHub(connectionString, hub, test, options = impatient) {
  const producer = new EventHubProducerClient(connectionString, hub, options);
  const readers = [];
  const read = (partition, more = {}) => {
    const reader = new Reader(connectionString, hub, partition, { options, ...more });
    readers.push(reader);
    return reader;
  };
  try {
    await test({ producer, read });
  } finally {
    await Promise.all(readers.map((r) => r.close()));
    await producer.close();
  }
}
