// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/broker/jobs/forward"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/vfs"
)

func (r *rig) pause(addr string, p Pause) {
	r.t.Helper()
	if err := r.Pause(r.t.Context(), addr, p); err != nil {
		r.t.Fatalf("pause %q: %v", addr, err)
	}
}

// scheduled is a message that waits for a time.
func scheduled(body string, at time.Time) *message.Message {
	d := message.Draft{Body: []byte(body), Annotations: []message.Pair{{
		Name: message.AnnotationScheduledEnqueueTime, Value: codec.Timestamp(at)}}}
	return d.Message()
}

// B3: what falls due on a topic that is paused waits there, and is published when
// the topic goes on.
func TestPausedTopicPublishesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.topic(entity.Topic{Name: "t"}, entity.Subscription{Name: "s"})
		r.send("t", scheduled("a", time.Now().Add(time.Minute)), scheduled("b", time.Now().Add(2*time.Minute)))
		r.pause("t", Pause{Sending: true})
		time.Sleep(time.Hour)
		if c := r.counts("t"); c.Active != 2 || c.TransferDead != 0 {
			t.Fatalf("the paused topic has %+v, want two that wait", c)
		}
		r = r.restart() // a pause outlives it, and so does what waits
		time.Sleep(time.Hour)
		r.pause("t", Pause{})
		synctest.Wait()
		wantBodies(t, "the subscription", r.take("t/Subscriptions/s"), "a", "b")
	})
}

// B3: what a topic has accepted is published, whatever it accepts by then.
func TestHeldMessageIsPublishedThoughTheLimitSank(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.topic(entity.Topic{Name: "t"}, entity.Subscription{Name: "s"})
		large := string(make([]byte, 4000))
		r.send("t", scheduled(large, time.Now().Add(time.Minute)))
		if _, err := r.UpdateTopic(t.Context(), entity.Topic{Name: "t", MaxMessageSizeInKilobytes: 1}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		wantBodies(t, "the subscription", r.take("t/Subscriptions/s"), large)
	})
}

// B3: messages wait for a target that takes none, in their order, and go on as soon
// as it does.
func TestForwardWaitsForAPausedTarget(t *testing.T) {
	const messages = 600 // more than a forwarder takes at a time
	stops := map[string]func(r *rig, to string, stopped bool) error{
		"paused": func(r *rig, to string, stopped bool) error {
			return r.Pause(r.t.Context(), to, Pause{Sending: stopped})
		},
		"disabled": func(r *rig, to string, stopped bool) error {
			status := map[bool]entity.Status{true: entity.SendDisabled, false: entity.Active}[stopped]
			_, err := r.UpdateQueue(r.t.Context(), entity.Queue{Name: to, Status: status})
			return err
		},
		"full": func(r *rig, to string, stopped bool) error {
			limit := map[bool]int64{true: 1}[stopped]
			_, err := r.UpdateQueue(r.t.Context(), entity.Queue{Name: to, MaxMessageCount: limit})
			return err
		},
	}
	for name, stop := range stops {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t)
				for _, from := range []string{"a", "b"} { // in the shard of the target and in the other
					r.queue(entity.Queue{Name: "to" + from})
					r.queue(entity.Queue{Name: from, ForwardTo: "to" + from})
					r.send("to"+from, msg("first"))
					if err := stop(r, "to"+from, true); err != nil {
						t.Fatal(err)
					}
					var want []string
					for i := range messages {
						r.send(from, msg(fmt.Sprint(i)))
						want = append(want, fmt.Sprint(i))
					}
					time.Sleep(time.Hour)
					if c := r.counts(from); c.Active != messages || c.Dead+c.TransferDead != 0 {
						t.Fatalf("%s: %+v, want all to wait", from, c)
					}
					if err := stop(r, "to"+from, false); err != nil {
						t.Fatal(err)
					}
					before := time.Now()
					synctest.Wait()
					if waited := time.Since(before); waited > 0 {
						t.Errorf("the messages went on after %v, want at once", waited)
					}
					wantBodies(t, from, r.take("to"+from), append([]string{"first"}, want...)...)
				}
			})
		})
	}
}

// B3: the same for dead letters, also while there is no target at all.
func TestForwardedDeadLettersWaitForTheirTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.queue(entity.Queue{Name: "graves"})
		r.queue(entity.Queue{Name: "q", ForwardDeadLetteredMessagesTo: "graves"})
		if err := r.DeleteQueue(t.Context(), "graves"); err != nil {
			t.Fatal(err)
		}
		r.send("q", msg("a"), msg("b"))
		r.deadLetter("q", 2)
		time.Sleep(time.Hour)
		if c := r.counts("q"); c.Dead != 2 {
			t.Fatalf("without a target: %+v, want both among the dead letters", c)
		}
		r.queue(entity.Queue{Name: "graves", Status: entity.SendDisabled})
		time.Sleep(time.Hour)
		if c := r.counts("q"); c.Dead != 2 {
			t.Fatalf("with a closed target: %+v, want both among the dead letters", c)
		}
		if _, err := r.UpdateQueue(t.Context(), entity.Queue{Name: "graves"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		wantBodies(t, "graves", r.take("graves"), "a", "b")
	})
}

// B3: a class that the target throttles does not delay the others.
func TestForwardGoesOnBesideAThrottledClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.ranked("to", `{"classes": [
			{"name": "paid", "level": 8, "when": "plan = 'paid'"},
			{"name": "free", "level": 3, "rate": "1/m"}]}`)
		r.queue(entity.Queue{Name: "from", ForwardTo: "to"})
		r.send("from", msg("f0"), msg("f1"), msg("f2"))
		synctest.Wait()
		r.send("from", msg("p", "plan", "paid"))
		synctest.Wait()
		wantBodies(t, "to", r.take("to"), "p", "f0")
		time.Sleep(5 * time.Minute)
		late := r.take("to")
		slices.Sort(late) // in the order of the retries when there is space
		wantBodies(t, "to", late, "f1", "f2")
	})
}

// B3: a forward that is taken away gives back what it had in hand, uncounted.
func TestForwardThatIsTakenAwayGivesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.queue(entity.Queue{Name: "to"})
		r.pause("to", Pause{Sending: true})
		r.queue(entity.Queue{Name: "from", ForwardTo: "to"})
		r.send("from", msg("a"), msg("b"))
		time.Sleep(time.Minute)
		if _, err := r.UpdateQueue(t.Context(), entity.Queue{Name: "from"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		_, k := r.receive("from", 2, ReceiverOptions{})
		synctest.Wait()
		if len(k.ds) != 2 {
			t.Fatalf("%d messages, want both", len(k.ds))
		}
		for range 2 {
			if d := <-k.ds; d.Failures != 0 {
				t.Errorf("message %d counts %d failures, want none", d.Seq, d.Failures)
			}
		}
	})
}

// slowDisk is a disk whose reads wait while gate is set, and whose syncs while syncs is.
type slowDisk struct {
	vfs.FS
	gate, syncs atomic.Pointer[chan struct{}]
}

func (d *slowDisk) Create(name string) (vfs.File, error) { return d.file(d.FS.Create(name)) }
func (d *slowDisk) Open(name string) (vfs.File, error)   { return d.file(d.FS.Open(name)) }

func (d *slowDisk) file(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return slowFile{f, d}, nil
}

type slowFile struct {
	vfs.File
	disk *slowDisk
}

func (f slowFile) ReadAt(b []byte, off int64) (int, error) {
	if gate := f.disk.gate.Load(); gate != nil {
		<-*gate
	}
	return f.File.ReadAt(b, off)
}

func (f slowFile) Sync() error {
	if gate := f.disk.syncs.Load(); gate != nil {
		<-*gate
	}
	return f.File.Sync()
}

// B9: a forward that takes long keeps no other waiting.
func TestSlowForwardStallsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &slowDisk{FS: vfs.NewMem()}
		r := startOn(t, disk)
		for _, name := range []string{"slow", "fast"} {
			r.queue(entity.Queue{Name: name + "to"})
			r.queue(entity.Queue{Name: name, ForwardTo: name + "to"})
		}
		r.pause("slow", Pause{Receiving: true})
		r.send("slow", msg("m"))
		r = r.restart() // what was sent before is read from the disk
		gate := make(chan struct{})
		disk.gate.Store(&gate)
		r.pause("slow", Pause{})
		synctest.Wait()
		r.send("fast", msg("m"))
		synctest.Wait()
		if c := r.counts("fastto"); c.Active != 1 {
			t.Errorf("behind a slow forward: %+v, want the message forwarded", c)
		}
		if c := r.counts("slowto"); c.Active != 0 {
			t.Errorf("the slow forward was not slow: %+v", c)
		}
		disk.gate.Store(nil)
		close(gate)
		synctest.Wait()
		wantBodies(t, "slowto", r.take("slowto"), "m")
	})
}

// B9: however many forwards are slow at the same time, the goroutines are bounded,
// and each has its turn.
func TestWorkersOfForwardersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const forwards, messages = forward.Workers + 20, forward.Turn + 10
		disk := &slowDisk{FS: vfs.NewMem()}
		r := startOn(t, disk)
		r.queue(entity.Queue{Name: "to"})
		for i := range forwards {
			name := fmt.Sprint("slow", i)
			r.queue(entity.Queue{Name: name, ForwardTo: "to"})
			r.pause(name, Pause{Receiving: true})
			for range messages {
				r.send(name, msg("m"))
			}
		}
		r = r.restart()
		gate := make(chan struct{})
		disk.gate.Store(&gate)
		for i := range forwards {
			r.pause(fmt.Sprint("slow", i), Pause{})
		}
		synctest.Wait()
		workers := func() (int, int) {
			for _, s := range r.JobStats() {
				if s.Name == "forward" {
					return s.Running, s.Waiting
				}
			}
			return -1, -1
		}
		if at, line := workers(); at != forward.Workers || line != forwards-forward.Workers {
			t.Errorf("%d workers and %d in line, want %d and %d", at, line, forward.Workers, forwards-forward.Workers)
		}
		disk.gate.Store(nil)
		close(gate)
		synctest.Wait()
		if at, line := workers(); at != 0 || line != 0 {
			t.Errorf("%d workers and %d in line when all is done, want none", at, line)
		}
		if c := r.counts("to"); c.Active != forwards*messages {
			t.Errorf("%d messages forwarded, want %d", c.Active, forwards*messages)
		}
	})
}

// B3: what can never be forwarded is set aside, dead letters too, and keeps nothing
// else waiting.
func TestWhatCanNeverBeForwardedIsSetAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		for i := range 4 { // names of either shard
			to, from := fmt.Sprint("to", i), fmt.Sprint("from", i)
			r.queue(entity.Queue{Name: to, RequiresSession: true, MaxMessageSizeInKilobytes: 1})
			r.queue(entity.Queue{Name: from, ForwardTo: to})
			r.queue(entity.Queue{Name: "dead" + from, ForwardDeadLetteredMessagesTo: to})
			in := message.Draft{Body: []byte("in"), SessionID: "s"}
			large := message.Draft{Body: make([]byte, 2000), SessionID: "s"}
			for range forward.Window { // as many as a forwarder takes at a time
				r.send(from, msg("none"))
				r.send("dead"+from, msg("none"))
			}
			for _, addr := range []string{from, "dead" + from} {
				r.send(addr, large.Message(), in.Message())
			}
			r.deadLetter("dead"+from, forward.Window+2)
			synctest.Wait()
			for _, addr := range []string{from, "dead" + from} {
				if c := r.counts(addr); c.TransferDead != forward.Window+1 || c.Total() != c.TransferDead {
					t.Errorf("%s: %+v, want %d transfer dead letters", addr, c, forward.Window+1)
				}
			}
			if c := r.counts(to); c.Active != 2 {
				t.Errorf("%s: %+v, want the two messages that it takes", to, c)
			}
		}
	})
}
