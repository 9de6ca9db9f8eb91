#!/bin/sh
# Counts, for each message: triagemq work preemption --slots 4 --preempt --exec ./count.sh
# STEPS and PAUSE change how far and how fast.
read -r name || [ -n "$name" ]
steps=${STEPS:-60}
[ "$TRIAGEMQ_PRIORITY" = high ] && steps=1
i=0
while [ "$i" -lt "$steps" ]; do
	i=$((i + 1))
	echo "$name $i"
	sleep "${PAUSE:-1}"
done
