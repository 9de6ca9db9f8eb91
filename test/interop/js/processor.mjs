// SPDX-License-Identifier: Apache-2.0

// One instance of a processor of the Event Hubs SDK. It tells its standard output what it
// does, a line each, and stops politely when its standard input ends:
//
//	claim PARTITION
//	event PARTITION NUMBER BODY
//	checkpoint PARTITION NUMBER
//	lost PARTITION
//
// usage: node processor.mjs CONNECTION-STRING HUB BLOBS CONTAINER STRATEGY [GROUP]

import { EventHubConsumerClient, earliestEventPosition } from "@azure/event-hubs";
import { BlobCheckpointStore } from "@azure/eventhubs-checkpointstore-blob";
import { ContainerClient } from "@azure/storage-blob";

const [connectionString, hub, blobs, container, strategy, group = "$Default"] = process.argv.slice(2);
const store = new BlobCheckpointStore(new ContainerClient(blobs, container));
const client = new EventHubConsumerClient(group, connectionString, hub, store, {
  retryOptions: { maxRetries: 3, retryDelayInMs: 50, timeoutInMs: 5_000 },
  // Blobs have times in whole seconds.
  loadBalancingOptions: { strategy, updateIntervalInMs: 300, partitionOwnershipExpirationIntervalInMs: 4_000 },
});
const subscription = client.subscribe({
  processInitialize: async ({ partitionId }) => console.log("claim", partitionId),
  processClose: async (_, { partitionId }) => console.log("lost", partitionId),
  processError: async (error, { partitionId }) => console.error(partitionId, error.code, error.message),
  processEvents: async (events, context) => {
    for (const e of events) console.log("event", context.partitionId, e.sequenceNumber, e.body);
    if (events.length === 0) return;
    await context.updateCheckpoint(events.at(-1));
    console.log("checkpoint", context.partitionId, events.at(-1).sequenceNumber);
  },
}, { startPosition: earliestEventPosition, maxBatchSize: 20, maxWaitTimeInSeconds: 0.1 });

process.stdin.resume().on("end", async () => {
  await subscription.close();
  await client.close();
  process.exit();
});
