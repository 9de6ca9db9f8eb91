// SPDX-License-Identifier: Apache-2.0

// Sends and receives one message over TLS, or over a secure WebSocket, and
// prints its body. It is a program of its own because Node reads
// NODE_EXTRA_CA_CERTS only when it starts.
//
// usage: node secure.mjs tls|websocket CONNECTION-STRING QUEUE

import { ServiceBusClient } from "@azure/service-bus";
import WebSocket from "ws";

const [transport, connectionString, queue] = process.argv.slice(2);
const options = transport === "websocket" ? { webSocketOptions: { webSocket: WebSocket } } : {};
const client = new ServiceBusClient(connectionString, options);
await client.createSender(queue).sendMessages({ body: `over ${transport}` });
const receiver = client.createReceiver(queue);
const [message] = await receiver.receiveMessages(1, { maxWaitTimeInMs: 10_000 });
await receiver.completeMessage(message);
console.log(message.body);
await client.close();
