// SPDX-License-Identifier: Apache-2.0

package reclassify

import (
	"context"
	"log/slog"
	"time"

	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
)

// pass applies the policy of one queue to all its messages, in slices.
//
//	walk from 0 to the last ──► end: are there any more of the old policy?
//	     ▲                        │ yes: from the first that arrived since
//	     └────────────────────────┘ no: the queue is classified
type pass struct {
	n     *catalog.Entity
	added bool      // again, since the slice in progress began; guarded by Reclassifier.mu
	after time.Time // there is no slice before; guarded by Reclassifier.mu

	// The rest is owned by Run.

	def     *catalog.Definition // whose policy is applied; nil before the first slice
	sorter  sorter
	from    queue.SeqNo // where the walk goes on
	mark    queue.SeqNo // of the first message that arrived after it had begun; zero before it has
	through bool        // it has looked at all
	ended   bool        // all messages are classified, and it is to be recorded
}

// slice goes on until a time, and reports whether the queue is classified.
func (p *pass) slice(ctx context.Context, c Catalog, until time.Time) (done bool, err error) {
	def := p.n.Definition()
	if def.Classified == def.PolicyRevision {
		return true, nil
	}
	if p.def == nil || p.def.PolicyRevision != def.PolicyRevision {
		p.def, p.sorter = def, sorter{n: p.n, classifier: def.Classifier}
		p.walk(0)
		p.ended = false
	}
	for !p.ended {
		if err := p.step(ctx, until); err != nil {
			return false, err
		}
		if !p.ended && !time.Now().Before(until) {
			return false, nil
		}
	}
	return true, c.MarkClassified(ctx, p.n, p.def.Classifier)
}

// walk begins to look at the messages from a number on.
func (p *pass) walk(from queue.SeqNo) {
	p.from, p.mark, p.through, p.sorter.renumbered = from, 0, false, false
}

// step looks at a chunk of messages, or at what is left after the last one.
func (p *pass) step(ctx context.Context, until time.Time) error {
	switch {
	case !p.through:
		return p.look(ctx, until)
	case p.sorter.renumbered:
		p.walk(p.mark)
		return nil
	}
	// Senders that loaded the old policy may still send messages. The shard has the last
	// sequence number of them: what arrived since a walk began is examined in another one.
	end, err := queueserver.Do(ctx, p.n.Shard, queueserver.EndReclassify{ID: p.n.ID, Revision: p.def.PolicyRevision, Examined: p.mark})
	switch {
	case err != nil:
		return err
	case end.Again:
		p.walk(p.mark)
	default:
		p.ended = true
	}
	return nil
}

// look classifies the messages of a chunk, as many as there is time for.
func (p *pass) look(ctx context.Context, until time.Time) error {
	found, err := chunk(ctx, p.n, p.from)
	if err != nil {
		return err
	}
	if p.mark == 0 {
		p.mark = found.Last + 1
	}
	n, err := p.sorter.sort(ctx, found.Messages, until)
	switch {
	case err != nil:
		return err
	case n < len(found.Messages):
		p.from = found.Messages[n].Seq
	default:
		p.from, p.through = found.Next, found.Next == 0
	}
	return nil
}

// report logs which messages have not got what the policy says.
func (p *pass) report(ctx context.Context, log *slog.Logger) {
	if p.sorter.unread > 0 {
		log.LogAttrs(ctx, slog.LevelError, "messages that cannot be read keep their level and are in no class",
			slog.String("entity", p.n.Path), slog.Int("count", p.sorter.unread), slog.Any("err", p.sorter.err))
	}
	if p.sorter.keyless > 0 {
		log.LogAttrs(ctx, slog.LevelWarn, "messages are in turn without a fair key: there is no memory for more (limits.storedMemory)",
			slog.String("entity", p.n.Path), slog.Int("count", p.sorter.keyless))
	}
}
