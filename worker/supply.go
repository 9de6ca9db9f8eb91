// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/worker/internal/slots"
)

// delivery is a message with its lock.
type delivery struct {
	*client.Received
	from    receiver
	rank    slots.Rank
	session *heldSession // that it belongs to; nil without Pool.Sessions
}

// supply gets messages from a pool's sources. Each channel of the scheduler has its own
// receivers, because a receiver that waits cannot be polled.
type supply struct {
	open        opener
	sources     []Source
	rule        Selection
	min, max    client.Priority
	buffer      int
	durable     bool // locks
	preempts    bool
	sessions    sessionOpener // nil without Pool.Sessions
	sessionIdle time.Duration // how long a slot keeps a session without messages
	log         *slog.Logger
	ordered     func(context.Context) // waits until the broker has said what the pool is to do

	known      atomic.Bool  // extensions is valid
	extensions atomic.Bool  // the broker knows levels and several sources
	ceiling    atomic.Int32 // lowest level above which the broker refuses receivers
	trouble    atomic.Pointer[string]
	late       atomic.Pointer[overdue] // what was found last
	peeked     []client.SeqNo          // of each source: all before are beyond min and max; owned by lookForOverdue
	turns      *slots.Turns            // with ByWeight; owned by the main channel

	mu        sync.Mutex
	receivers map[receiverKey]openReceiver // guarded by mu
	order     []receiverKey                // oldest first; guarded by mu
	unsettled map[receiver]int             // messages of each; guarded by mu
	retired   map[receiver]bool            // to close when its messages are settled; guarded by mu
	absent    []bool                       // sources that do not exist; guarded by mu
	looked    time.Time                    // when absent sources were last looked for; guarded by mu
}

func newSupply(p *Pool, s settings) *supply {
	open := p.open
	if open == nil {
		open = openWith(p.Client)
	}
	weights := make([]int, len(s.sources))
	for i, source := range s.sources {
		weights[i] = max(source.Weight, 1)
	}
	out := &supply{
		open: open, sources: s.sources, rule: p.Select,
		min: p.MinPriority, max: p.MaxPriority, buffer: p.Buffer, durable: p.DurableLocks, preempts: p.Preempt != nil, log: s.log,
		turns: slots.NewTurns(weights), receivers: map[receiverKey]openReceiver{},
		absent: make([]bool, len(s.sources)), peeked: make([]client.SeqNo, len(s.sources)),
		unsettled: map[receiver]int{}, retired: map[receiver]bool{},
	}
	out.ceiling.Store(255)
	if p.Sessions != nil {
		out.sessions, out.sessionIdle = p.sessions, cmp.Or(p.Sessions.Idle, defaultIdle)
		if out.sessions == nil {
			out.sessions = sessionsWith(p.Client)
		}
	}
	return out
}

// reachable reports whether the broker can be asked for messages above a rank.
func (s *supply) reachable(r slots.Rank) bool {
	return r.Source > 0 || s.extensions.Load() && int32(r.Level) < s.ceiling.Load()
}

// fetch carries out a request of the scheduler. It returns no messages when ctx ends,
// and an error only when it is useless to go on.
func (s *supply) fetch(ctx context.Context, a slots.Action) ([]delivery, error) {
	switch a.Channel {
	case slots.Urgent:
		return s.patiently(ctx, func() ([]delivery, error) { return s.above(ctx, a.Bound) })
	case slots.Poll:
		return s.pollAbove(ctx, a.Bound, a.N), nil
	default:
		if a.Overdue {
			return s.takeOverdue(ctx, a.N), nil
		}
		return s.patiently(ctx, func() ([]delivery, error) { return s.next(ctx, a.N) })
	}
}

// next waits for up to n messages of any rank.
func (s *supply) next(ctx context.Context, n int) ([]delivery, error) {
	if s.sessions != nil {
		return s.nextSession(ctx)
	}
	s.lookForAbsent(ctx)
	if err := s.detect(ctx); err != nil {
		return nil, err
	}
	if s.extensions.Load() {
		if s.ordered(ctx); ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	all := receiverKey{slots.Main, 0, len(s.sources), -1, false}
	switch {
	case s.buffer > 0 && s.extensions.Load():
		return s.nextBuffered(ctx, all, n)
	case len(s.sources) == 1:
		return s.pollThenWait(ctx, all, n)
	case s.rule == ByWeight:
		if got, err := s.pollByWeight(ctx, n); len(got) > 0 || err != nil {
			return got, err
		}
		if s.extensions.Load() {
			return s.wait(ctx, all, 1)
		}
		return s.pollUntil(ctx, func() ([]delivery, error) { return s.pollByWeight(ctx, n) })
	case s.extensions.Load():
		return s.pollThenWait(ctx, all, n)
	}
	return s.pollUntil(ctx, func() ([]delivery, error) { return s.pollInOrder(ctx, slots.Main, len(s.sources), n) })
}

// pollThenWait takes what there is, else waits for one message. To wait for several
// would be slower: a receiver that has one waits a while for the next.
func (s *supply) pollThenWait(ctx context.Context, k receiverKey, n int) ([]delivery, error) {
	if n == 1 || !s.extensions.Load() {
		return s.wait(ctx, k, n)
	}
	if got, err := s.poll(ctx, k, n); len(got) > 0 || err != nil {
		return got, err
	}
	return s.wait(ctx, k, 1)
}

// detect finds out, once, whether the broker knows levels and several sources.
func (s *supply) detect(ctx context.Context) error {
	if s.known.Load() {
		return nil
	}
	channel := slots.Main
	if s.buffer > 0 {
		channel = peekChannel // which fetches nothing ahead
	}
	var r receiver
	var err error
	for i := range s.sources {
		if r, err = s.receiver(ctx, receiverKey{channel, i, i + 1, -1, false}); !errors.Is(err, client.ErrNotFound) {
			break
		}
	}
	if err != nil {
		return err
	}
	s.extensions.Store(r.Extensions())
	s.known.Store(true)
	if !r.Extensions() && (s.preempts || len(s.sources) > 1) {
		s.log.Info("this broker cannot filter by level or wait at several sources: " +
			"the pool polls its sources in order, and only an earlier source preempts a later one")
	}
	return nil
}

// above waits for one message above a rank.
func (s *supply) above(ctx context.Context, bound slots.Rank) ([]delivery, error) {
	s.lookForAbsent(ctx)
	if bound.Source > 1 && !s.extensions.Load() {
		return s.pollUntil(ctx, func() ([]delivery, error) { return s.pollInOrder(ctx, slots.Urgent, bound.Source, 1) })
	}
	got, err := s.wait(ctx, s.keyAbove(slots.Urgent, bound), 1)
	if s.lower(bound, err) {
		return nil, context.Canceled
	}
	return got, err
}

// lower notes that the broker refuses receivers above a level, because the pool's own
// limit is there. Nothing is asked for above that level again.
func (s *supply) lower(bound slots.Rank, err error) bool {
	refused := errors.Is(err, client.ErrInvalid) || errors.Is(err, client.ErrNotAllowed)
	if refused && bound.Source == 0 {
		s.ceiling.Store(min(s.ceiling.Load(), int32(bound.Level)))
		return true
	}
	return false
}

// pollTimeout bounds how long a free slot waits for the answer to a poll.
const pollTimeout = 2 * time.Second

// pollAbove takes what there is above a rank. Trouble means that there is nothing: a
// suspended task then goes on, and the main channel reports it.
func (s *supply) pollAbove(ctx context.Context, bound slots.Rank, n int) []delivery {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	var got []delivery
	var err error
	if bound.Source > 1 && !s.extensions.Load() {
		got, err = s.pollInOrder(ctx, slots.Poll, bound.Source, n)
	} else {
		got, err = s.poll(ctx, s.keyAbove(slots.Poll, bound), n)
	}
	s.lower(bound, err)
	return got
}

// keyAbove names the receiver for messages above a rank: all of the sources before it,
// or in the first source, or in all sources of equal standing, the levels above it.
func (s *supply) keyAbove(c slots.Channel, bound slots.Rank) receiverKey {
	switch {
	case bound.Source > 0:
		return receiverKey{c, 0, bound.Source, -1, false}
	case s.rule == ByOrder:
		return receiverKey{c, 0, 1, int(bound.Level) + 1, false}
	default:
		return receiverKey{c, 0, len(s.sources), int(bound.Level) + 1, false}
	}
}

// pollInOrder polls the first sources, in order, for up to n messages.
func (s *supply) pollInOrder(ctx context.Context, c slots.Channel, sources, n int) ([]delivery, error) {
	var got []delivery
	for i := 0; i < sources && len(got) < n; i++ {
		more, err := s.poll(ctx, receiverKey{c, i, i + 1, -1, false}, n-len(got))
		got = append(got, more...)
		if err != nil && !s.skips(err) {
			return got, s.unless(len(got) > 0, err)
		}
	}
	return got, nil
}

// skips reports whether an error means that a source does not exist, while others do.
func (s *supply) skips(err error) bool {
	return errors.Is(err, client.ErrNotFound) && len(s.sources) > 1 && !s.allAbsent()
}

// unless hides an error that the next request meets again, if there are messages.
func (s *supply) unless(some bool, err error) error {
	if some {
		return nil
	}
	return err
}

// pollByWeight polls each source for its share of n messages. What one does not have,
// the others give.
func (s *supply) pollByWeight(ctx context.Context, n int) ([]delivery, error) {
	var got []delivery
	empty := make([]bool, len(s.sources))
	for len(got) < n {
		shares := s.turns.Share(n-len(got), empty)
		if shares == nil {
			break
		}
		for i, share := range shares {
			if share == 0 {
				continue
			}
			more, err := s.poll(ctx, receiverKey{slots.Main, i, i + 1, -1, false}, share)
			got = append(got, more...)
			if err != nil && !s.skips(err) {
				return got, s.unless(len(got) > 0, err)
			}
			empty[i] = len(more) < share
			s.turns.Return(i, share-len(more))
		}
	}
	return got, nil
}

// The pauses between polls where the broker cannot wait at several sources.
const (
	firstPollPause = 20 * time.Millisecond
	lastPollPause  = time.Second
)

// pollUntil polls until there is something.
func (s *supply) pollUntil(ctx context.Context, poll func() ([]delivery, error)) ([]delivery, error) {
	for pause := firstPollPause; ; pause = min(2*pause, lastPollPause) {
		got, err := poll()
		if len(got) > 0 || err != nil {
			return got, err
		}
		if !sleep(ctx, pause) {
			return nil, context.Cause(ctx)
		}
		s.lookForAbsent(ctx)
	}
}

func (s *supply) wait(ctx context.Context, k receiverKey, n int) ([]delivery, error) {
	for {
		r, err := s.receiver(ctx, k)
		if err != nil {
			return nil, err
		}
		waiting, cancel := s.untilLook(ctx, k)
		ms, err := r.Receive(waiting, n)
		look := err != nil && waiting.Err() != nil && ctx.Err() == nil
		cancel()
		if look {
			s.lookForAbsent(ctx)
			continue
		}
		s.note(ctx, k, err)
		return s.deliveries(r, k, ms), err
	}
}

func (s *supply) poll(ctx context.Context, k receiverKey, n int) ([]delivery, error) {
	r, err := s.receiver(ctx, k)
	if err != nil {
		return nil, err
	}
	ms, err := r.Poll(ctx, n)
	s.note(ctx, k, err)
	return s.deliveries(r, k, ms), err
}

// note ends the trouble after an answer of the broker. After a failure the receiver is
// dropped: when the next one opens, the broker is back.
func (s *supply) note(ctx context.Context, k receiverKey, err error) {
	switch {
	case err == nil:
		s.recovered()
	case ctx.Err() == nil:
		s.drop(k)
	}
}

func (s *supply) deliveries(r receiver, k receiverKey, ms []*client.Received) []delivery {
	s.mu.Lock()
	if len(ms) > 0 {
		s.unsettled[r] += len(ms)
	}
	s.mu.Unlock()
	out := make([]delivery, len(ms))
	for i, m := range ms {
		out[i] = delivery{Received: m, from: r, rank: s.rank(k, m)}
	}
	return out
}

// rank returns how urgent a message is in this pool.
func (s *supply) rank(k receiverKey, m *client.Received) slots.Rank {
	r := slots.Rank{Level: levelOf(m)}
	if s.rule != ByOrder {
		return r
	}
	r.Source = k.first
	for i := k.first; i < k.last; i++ {
		if strings.EqualFold(s.sources[i].Entity, m.Source) {
			r.Source = i
		}
	}
	return r
}

// levelOf returns the level that the broker told, or else the one in the header.
func levelOf(m *client.Received) uint8 {
	if m.Level != nil {
		return *m.Level
	}
	if level, ok := levelNamed(m.Priority); ok {
		return level
	}
	return 4 // of AMQP, for messages without one
}
