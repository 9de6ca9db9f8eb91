# SPDX-License-Identifier: Apache-2.0
"""One instance of a processor of the Event Hubs SDK.

It tells its standard output what it does, a line each, and stops politely when its
standard input ends:

    claim PARTITION
    event PARTITION NUMBER BODY
    checkpoint PARTITION NUMBER
    lost PARTITION

usage: processor.py CONNECTION-STRING HUB CA BLOBS CONTAINER STRATEGY
"""

import asyncio
import sys

from azure.eventhub import LoadBalancingStrategy
from azure.eventhub.aio import EventHubConsumerClient
from azure.eventhub.extensions.checkpointstoreblobaio import BlobCheckpointStore

connection, hub, ca, blobs, container, strategy = sys.argv[1:]


def tell(*words):
    print(*words, flush=True)


async def on_batch(context, events):
    for e in events:
        tell("event", context.partition_id, e.sequence_number, e.body_as_str())
    if events:
        await context.update_checkpoint(events[-1])
        tell("checkpoint", context.partition_id, events[-1].sequence_number)


async def on_initialize(context):
    tell("claim", context.partition_id)


async def on_close(context, _):
    tell("lost", context.partition_id)


async def on_error(context, error):
    print(context and context.partition_id, repr(error), file=sys.stderr, flush=True)


async def main():
    client = EventHubConsumerClient.from_connection_string(
        connection, "$Default", eventhub_name=hub, connection_verify=ca,
        checkpoint_store=BlobCheckpointStore.from_connection_string(blobs, container),
        load_balancing_strategy=LoadBalancingStrategy(strategy), retry_backoff_factor=0.05,
        # Blobs have times in whole seconds.
        load_balancing_interval=0.3, partition_ownership_expiration_interval=5)
    reading = asyncio.create_task(client.receive_batch(
        on_batch, starting_position="-1", max_batch_size=20, max_wait_time=0.1,
        on_partition_initialize=on_initialize, on_partition_close=on_close, on_error=on_error))
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await client.close()
    await asyncio.gather(reading, return_exceptions=True)


asyncio.run(main())
