// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"slices"
	"sync"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/worker/internal/slots"
)

// receiverKey says what a receiver is for. A channel uses a receiver at most once at a
// time.
type receiverKey struct {
	channel     slots.Channel
	first, last int  // sources[first:last]
	min         int  // lowest level; negative: that of the pool
	only        bool // min is the highest level, too
}

// maxReceivers bounds how many receivers a pool keeps. Each level at which a task can
// be preempted needs one.
const maxReceivers = 12

// openReceiver is a receiver, with the numbers of its sources.
type openReceiver struct {
	receiver
	of []int
}

// receiver returns the receiver of a key, after opening it if need be: again, if other
// sources exist than when it was opened.
func (s *supply) receiver(ctx context.Context, k receiverKey) (receiver, error) {
	s.mu.Lock()
	old := s.receivers[k]
	s.mu.Unlock()
	if old.receiver != nil {
		if slices.Equal(old.of, s.present(k)) {
			return old.receiver, nil
		}
		s.drop(k)
	}
	r, of, err := s.openPresent(ctx, k)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.receivers[k] = openReceiver{r, of}
	s.order = append(s.order, k)
	surplus := s.surplus(k.channel)
	s.mu.Unlock()
	s.recovered()
	if surplus != nil {
		s.retire(surplus)
	}
	return r, nil
}

// drop forgets the receiver of a key, and closes it when its messages are settled.
func (s *supply) drop(k receiverKey) {
	s.mu.Lock()
	r := s.receivers[k].receiver
	delete(s.receivers, k)
	s.order = slices.DeleteFunc(s.order, func(o receiverKey) bool { return o == k })
	s.mu.Unlock()
	if r != nil {
		s.retire(r)
	}
}

// surplus removes and returns the oldest receiver of a channel that is not in use,
// if there are too many. Called with mu held.
func (s *supply) surplus(c slots.Channel) receiver {
	if len(s.receivers) <= maxReceivers+len(s.sources) {
		return nil
	}
	for i, k := range s.order[:len(s.order)-1] {
		if k.channel == c && c != slots.Main {
			r := s.receivers[k].receiver
			delete(s.receivers, k)
			s.order = append(s.order[:i], s.order[i+1:]...)
			return r
		}
	}
	return nil
}

// options are those of a receiver of some of the sources of a key.
func (s *supply) options(k receiverKey, of []int) *client.ReceiverOptions {
	o := &client.ReceiverOptions{MinPriority: s.min, MaxPriority: s.max, TellLevel: true, DurableLocks: s.durable}
	if k.min >= 0 {
		o.MinPriority = client.Level(uint8(k.min))
	}
	if k.only {
		o.MaxPriority = o.MinPriority
	}
	for _, i := range of[1:] {
		o.Sources = append(o.Sources, s.sources[i].Entity)
	}
	if len(o.Sources) > 0 && s.rule == ByLevel {
		o.SourceSelection = client.ByLevel
	}
	if s.isBuffer(k) {
		o.Prefetch = s.buffer
	}
	return o
}

// retire closes a receiver that is used no more, after its messages are settled. A
// settlement whose answer is lost with the link looks like a lost lock.
func (s *supply) retire(r receiver) {
	s.mu.Lock()
	busy := s.unsettled[r] > 0
	if busy {
		s.retired[r] = true
	}
	s.mu.Unlock()
	if !busy {
		s.close(r)
	}
}

// settled says that a message of a receiver needs it no more.
func (s *supply) settled(r receiver) {
	s.mu.Lock()
	s.unsettled[r]--
	last := s.unsettled[r] == 0
	retired := s.retired[r]
	if last {
		delete(s.unsettled, r)
		delete(s.retired, r)
	}
	s.mu.Unlock()
	if last && retired {
		s.close(r)
	}
}

// closeAll closes every receiver.
func (s *supply) closeAll() {
	s.mu.Lock()
	all := s.receivers
	s.receivers, s.order = map[receiverKey]openReceiver{}, nil
	s.mu.Unlock()
	var wg sync.WaitGroup
	for _, r := range all {
		wg.Go(func() { s.close(r.receiver) })
	}
	wg.Wait()
}

func (s *supply) close(r receiver) {
	if err := r.Close(); err != nil {
		s.log.Debug("receiver not closed cleanly", "err", err)
	}
}
