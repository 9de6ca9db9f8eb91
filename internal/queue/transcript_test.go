// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/script"
)

func TestTranscripts(t *testing.T) {
	script.Run(t, "testdata/*.txt", func(t *testing.T) func(script.Command) string {
		s := &stage{t: t, now: epochStart, tokens: map[SeqNo]Token{}, locks: map[string]SessionLock{}, names: map[Ref]string{}}
		s.q = New(Config{LockFor: 30 * time.Second}, 1)
		return s.run
	})
}

// stage is the queue of a transcript and what its clients remember.
type stage struct {
	t      *testing.T
	now    time.Time
	q      *Queue
	out    Effects
	log    [][]byte
	tokens map[SeqNo]Token
	locks  map[string]SessionLock
	names  map[Ref]string
}

func (s *stage) run(c script.Command) string {
	var reply strings.Builder
	reply.WriteString(s.command(c))
	for _, rec := range s.out.Records() {
		s.log = append(s.log, slices.Clone(rec))
	}
	for _, d := range s.out.DeadLettered {
		fmt.Fprintf(&reply, "dead letter %s: %s\n", s.name(d.Body), d.Reason)
	}
	s.out.Reset()
	if err := s.q.Check(); err != nil {
		s.t.Fatalf("line %d: %v", c.Line, err)
	}
	return reply.String()
}

func (s *stage) name(r Ref) string { return s.names[r] }

func (s *stage) command(c script.Command) string {
	switch c.Name {
	case "queue":
		s.q, s.log = New(s.config(c), 1), nil
		return ""
	case "configure":
		s.q.Configure(s.now, s.config(c), &s.out)
		for s.q.Reorder(10) {
		}
		return ""
	case "send":
		return s.send(c)
	case "take":
		return s.take(c)
	case "take-number":
		d, err := s.q.TakeSeq(s.now, SeqNo(c.WordInt(0)), TakeOptions{Session: s.locks[c.Text("session", "")]}, &s.out)
		return s.delivered(d, err)
	case "complete", "abandon", "retry", "release", "defer", "reject":
		return s.settle(c)
	case "renew-durably":
		until, err := s.q.RenewDurably(s.now, s.tokens[SeqNo(c.WordInt(0))], &s.out)
		return s.until(until, err)
	case "save":
		r := Ref{At: uint64(len(s.names) + 1000), Size: 5}
		s.names[r] = c.Text("state", "")
		return answer(s.q.Save(s.now, s.tokens[SeqNo(c.WordInt(0))], r, &s.out))
	case "renew":
		until, err := s.q.Renew(s.now, s.tokens[SeqNo(c.WordInt(0))])
		return s.until(until, err)
	case "cancel":
		return answer(s.q.Cancel(s.now, []SeqNo{SeqNo(c.WordInt(0))}, &s.out))
	case "remove":
		return answer(s.q.Remove(s.now, SeqNo(c.WordInt(0)), &s.out))
	case "reclass":
		r := Classification{Level: Level(c.Int("level", 4)), Key: c.Text("key", "")}
		return answer(s.q.Reclassify(s.now, SeqNo(c.WordInt(0)), r, &s.out))
	case "purge":
		p := Purge{Max: c.Int("max", 0)}
		for !s.q.Purge(s.now, &p, 2, &s.out) {
		}
		return fmt.Sprintf("%d gone\n", p.Gone)
	case "wait":
		return s.wait(c)
	case "peek":
		return s.peek()
	case "counts":
		n := s.q.Counts()
		retrying := ""
		if n.Retrying > 0 {
			retrying = fmt.Sprintf(", %d retrying", n.Retrying)
		}
		return fmt.Sprintf("%d ready, %d locked, %d scheduled, %d deferred%s\n", n.Ready, n.Locked, n.Scheduled, n.Deferred, retrying)
	case "explain":
		return s.explain(c)
	case "saturated":
		return fmt.Sprintln(s.q.Saturated(s.now))
	case "crash":
		return s.crash()
	}
	return s.sessionCommand(c)
}

func (s *stage) sessionCommand(c script.Command) string {
	switch c.Name {
	case "lock-session":
		l, until, err := s.q.LockSession(s.now, c.Word(0))
		if err == nil {
			s.locks[l.ID] = l
		}
		return s.until(until, err)
	case "next-session":
		l, _, ok := s.q.LockNextSession(s.now, TakeOptions{MinLevel: Level(c.Int("min", 0)), MaxLevel: Level(c.Int("max", 0))})
		if !ok {
			return "none\n"
		}
		s.locks[l.ID] = l
		return l.ID + "\n"
	case "renew-session":
		until, err := s.q.RenewSession(s.now, s.locks[c.Word(0)])
		return s.until(until, err)
	case "release-session":
		s.q.ReleaseSession(s.now, s.locks[c.Word(0)], &s.out)
		return ""
	case "sessions":
		ids, _ := s.q.Sessions(time.Time{}, 0, 100)
		slices.Sort(ids)
		return strings.Join(ids, " ") + "\n"
	case "set-state":
		r := Ref{At: uint64(len(c.Text("to", ""))), Size: 1}
		if !c.Has("to") {
			r = Ref{}
		}
		s.names[r] = c.Text("to", "")
		s.q.SetSessionState(s.now, c.Word(0), r, &s.out)
		return ""
	case "state":
		r, ok := s.q.SessionState(c.Word(0))
		if !ok {
			return "none\n"
		}
		return s.name(r) + "\n"
	}
	s.t.Fatalf("line %d: unknown command %q", c.Line, c.Name)
	return ""
}

func (s *stage) config(c script.Command) Config {
	cfg := Config{
		LockFor:         c.Duration("lock", 30*time.Second),
		TTL:             c.Duration("ttl", 0),
		MaxFailures:     uint32(c.Int("failures", 0)),
		DuplicateWindow: c.Duration("duplicates", 0),
		MaxCount:        int64(c.Int("count", 0)),
	}
	for _, w := range c.Words {
		switch w {
		case "sessions":
			cfg.Sessions = true
		case "dead-letter-expired":
			cfg.DeadLetterExpired = true
		case "dead":
			cfg.DeadLetterQueue = true
		case "send-paused":
			cfg.SendPaused = true
		case "receive-paused":
			cfg.ReceivePaused = true
		case "fair":
			cfg.Order.Fair = true
		case "finish":
			cfg.Order.LevelOrder = FinishFirst
		case "lifo":
			cfg.Order.LevelOrder = Lifo
		case "aging":
			cfg.Order.Discipline, cfg.Order.AgingInterval, cfg.Order.AgingMaxLevel = Aging, c.Duration("every", time.Minute), Level(c.Int("up-to", 9))
		case "deadline":
			cfg.Order.Discipline = Deadline
			cfg.Order.Objective = make([]time.Duration, 10)
			for l := range cfg.Order.Objective {
				cfg.Order.Objective[l] = c.Duration(fmt.Sprintf("objective%d", l), 0)
			}
		case "weighted":
			cfg.Order.Discipline = Weighted
			cfg.Order.Weight = weights(c)
		case "saturable":
			cfg.Order.Saturation = Saturation{Waiting: int64(c.Int("waiting", 0)), Oldest: c.Duration("oldest", 0)}
			cfg.Order.Weight = weights(c)
		default:
			s.t.Fatalf("line %d: unknown setting %q", c.Line, w)
		}
	}
	cfg.Order.DefaultShare = Share{Cap: uint32(c.Int("cap", 0)), Rate: float64(c.Int("rate", 0))}
	return cfg
}

func weights(c script.Command) []uint32 {
	ws := make([]uint32, 10)
	for l := range ws {
		ws[l] = uint32(c.Int(fmt.Sprintf("weight%d", l), 1))
	}
	return ws
}

func (s *stage) send(c script.Command) string {
	var as []Arrival
	for _, name := range c.Words {
		body := Ref{At: uint64(len(s.names) + 1000), Size: 10}
		s.names[body] = name
		as = append(as, Arrival{
			Body: body, Level: Level(c.Int("level", int(DefaultLevel))), MessageID: c.Text("id", ""),
			Session: c.Text("session", ""), InSession: c.Has("session"), Key: c.Text("key", ""),
			TTL: c.Duration("ttl", 0),
		})
		if c.Has("in") {
			as[len(as)-1].NotBefore = s.now.Add(c.Duration("in", 0))
		}
		if c.Has("since") {
			as[len(as)-1].OrderTime = s.now.Add(-c.Duration("since", 0))
		}
		if c.Has("age") {
			as[len(as)-1].At = s.now.Add(-c.Duration("age", 0))
		}
	}
	seqs := make([]SeqNo, len(as))
	if err := s.q.Enqueue(s.now, as, seqs, &s.out); err != nil {
		return err.Error() + "\n"
	}
	return strings.Trim(fmt.Sprint(seqs), "[]") + "\n"
}

func (s *stage) take(c script.Command) string {
	var b strings.Builder
	w := TakeOptions{
		MinLevel: Level(c.Int("min", 0)), MaxLevel: Level(c.Int("max", 0)),
		Session: s.locks[c.Text("session", "")], ReceiveAndDelete: c.Has("forget"), DurableLock: c.Has("durably"),
	}
	for range c.Int("times", 1) {
		d, ok := s.q.Take(s.now, w, &s.out)
		if !ok {
			b.WriteString("nothing\n")
			break
		}
		b.WriteString(s.delivered(d, nil))
	}
	return b.String()
}

func (s *stage) delivered(d Delivery, err error) string {
	if err != nil {
		return err.Error() + "\n"
	}
	s.tokens[d.Seq] = d.Token
	if d.Saved != (Ref{}) {
		return fmt.Sprintf("%d %s, failed %d times, with state %s\n", d.Seq, s.name(d.Body), d.Failures, s.name(d.Saved))
	}
	if d.Failures > 0 {
		return fmt.Sprintf("%d %s, failed %d times\n", d.Seq, s.name(d.Body), d.Failures)
	}
	return fmt.Sprintf("%d %s\n", d.Seq, s.name(d.Body))
}

func (s *stage) settle(c script.Command) string {
	t := s.tokens[SeqNo(c.WordInt(0))]
	var err error
	switch c.Name {
	case "complete":
		_, err = s.q.Complete(s.now, t, &s.out)
	case "abandon":
		_, err = s.q.Abandon(s.now, t, &s.out)
	case "retry":
		_, err = s.q.Retry(s.now, t, s.now.Add(c.Duration("in", 0)), &s.out)
	case "release":
		_, err = s.q.Release(s.now, t, &s.out)
	case "defer":
		_, err = s.q.Defer(s.now, t, &s.out)
	case "reject":
		_, err = s.q.Reject(s.now, t, c.Text("reason", ""), "", &s.out)
	}
	return answer(err)
}

func (s *stage) wait(c script.Command) string {
	for at := s.now.Add(mustDuration(c)); ; {
		due, ok := s.q.NextDeadline()
		if !ok || due.After(at) {
			s.now = at
			return ""
		}
		if due.After(s.now) {
			s.now = due
		}
		s.q.Tick(s.now, &s.out)
	}
}

func mustDuration(c script.Command) time.Duration {
	d, err := time.ParseDuration(c.Word(0))
	if err != nil {
		c.T.Fatalf("line %d: %v", c.Line, err)
	}
	return d
}

func (s *stage) peek() string {
	var b strings.Builder
	for _, d := range peekAll(s.q, s.now, nil) {
		state := [...]string{"ready", "deferred", "scheduled", "locked", "retrying"}[d.State]
		fmt.Fprintf(&b, "%d %s level %d %s", d.Seq, s.name(d.Body), d.Level, state)
		if !d.OrderTime.IsZero() {
			fmt.Fprintf(&b, ", %v old, as if %v", s.now.Sub(d.EnqueuedAt), s.now.Sub(d.OrderTime))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func (s *stage) explain(c script.Command) string {
	x := Explain{Seq: SeqNo(c.WordInt(0))}
	done, err := false, error(nil)
	for !done {
		done, err = s.q.Explain(s.now, &x, 1)
	}
	p := x.Position
	if err != nil {
		return err.Error() + "\n"
	}
	held := [...]string{"nothing", "a lock", "its schedule", "its deferral", "a pause", "its session", "the cap of its key", "the rate of its key", "a retry"}
	boost := ""
	if p.Boost.Seq != 0 {
		boost = fmt.Sprintf("its session is ranked as %d because of %d, ", p.Boost.Rank, p.Boost.Seq)
	}
	return fmt.Sprintf("rank %d, %sahead %v, held by %s\n", p.Rank, boost, p.Ahead, held[p.BlockedBy])
}

// crash replays the log into a new queue, as a restart does.
func (s *stage) crash() string {
	q := New(s.q.Config(), s.q.epoch+1)
	var out Effects
	for _, rec := range s.log {
		if err := q.Replay(rec, &out.Effects); err != nil {
			s.t.Fatal(err)
		}
	}
	s.q = q
	return ""
}

func (s *stage) until(until time.Time, err error) string {
	if err != nil {
		return err.Error() + "\n"
	}
	return fmt.Sprintf("for %v\n", until.Sub(s.now))
}

func answer(err error) string {
	if err != nil {
		return err.Error() + "\n"
	}
	return ""
}
