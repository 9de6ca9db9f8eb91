// SPDX-License-Identifier: Apache-2.0

// Sends and reads one event over TLS, or over a secure WebSocket, and prints its body.
// It is a program of its own because Node reads NODE_EXTRA_CA_CERTS only when it starts.
//
// usage: node secure-hub.mjs tls|websocket CONNECTION-STRING HUB

import { EventHubConsumerClient, EventHubProducerClient } from "@azure/event-hubs";
import WebSocket from "ws";

const [transport, connectionString, hub] = process.argv.slice(2);
const options = transport === "websocket" ? { webSocketOptions: { webSocket: WebSocket } } : {};
const producer = new EventHubProducerClient(connectionString, hub, options);
const { lastEnqueuedOffset: offset } = await producer.getPartitionProperties("0");
const consumer = new EventHubConsumerClient("$Default", connectionString, hub, options);
const arrived = new Promise((resolve, reject) => {
  consumer.subscribe("0", {
    processEvents: async (events) => { for (const e of events) if (e.body === `over ${transport}`) resolve(e.body); },
    processError: async (error) => reject(error),
  }, { startPosition: { offset } });
});
await producer.sendBatch([{ body: `over ${transport}` }]);
console.log(await arrived);
await consumer.close();
await producer.close();
