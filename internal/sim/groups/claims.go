// SPDX-License-Identifier: Apache-2.0

package groups

import (
	"errors"
	"fmt"

	"github.com/triagemq/triagemq/internal/group"
	"github.com/triagemq/triagemq/internal/streamserver"
)

// claimed is what the outside knows about the claims of a partition.
type claimed struct {
	last   group.Ownership // that won last
	tags   []string        // all that there were, the oldest first; "" is the first
	used   map[string]bool // by a claim that won
	flying int
}

// claim has a processor claim a partition, often with an ETag that it read long ago.
func (w *world) claim() {
	n := w.rng.IntN(w.filled)
	k, life := &w.claims[n], w.life
	if k.used == nil {
		k.used, k.tags = map[string]bool{}, []string{""}
	}
	tag := k.tags[len(k.tags)-1]
	if w.chance(3) {
		tag = k.tags[w.rng.IntN(len(k.tags))]
	}
	o := group.Ownership{Partition: n, Owner: fmt.Sprint("c", w.rng.IntN(3)), ETag: tag}
	lost := k.used[tag]
	k.flying++
	w.event("%s claims %d with %q", o.Owner, n, tag)
	w.post(w.hub.Manual().Claim(store, []group.Ownership{o}, func(won []group.Ownership, err error) {
		if life != w.life {
			return
		}
		k.flying--
		switch {
		case errors.Is(err, streamserver.ErrDiskFull):
			w.result.Refused++
		case err != nil:
			w.failf("claim: %v", err)
		case len(won) == 0:
			w.result.LostClaims++
		case lost || k.used[tag]:
			w.failf("partition %d: a second claim with %q won", n, tag)
		default:
			w.result.Won++
			k.used[tag] = true
			k.last = won[0]
			k.tags = append(k.tags, won[0].ETag)
		}
	}))
}

// checkClaims compares the claims with what is known, after a crash.
func (w *world) checkClaims() {
	g := w.hub.Manual().Groups()
	for n := range w.claims {
		k := &w.claims[n]
		var got group.Ownership
		if g != nil {
			for _, o := range g.Claims(store) {
				if o.Partition == n {
					got = o
				}
			}
		}
		if k.flying == 0 && got != k.last {
			w.failf("partition %d: claimed by %+v, and known is %+v", n, got, k.last)
		}
		if got.ETag != k.last.ETag { // one that was not answered
			k.used[k.last.ETag] = true
			k.tags = append(k.tags, got.ETag)
			k.last = got
		}
		k.flying = 0
	}
}
