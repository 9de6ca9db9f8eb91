// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/frame"
)

// served is a connection being served, with the other end of its pipe.
type served struct {
	*Conn
	peer   net.Conn
	cancel context.CancelCauseFunc
	result chan error // capacity 1
}

func serve(t *testing.T, app App, cfg Config) *served {
	t.Helper()
	ours, theirs := net.Pipe()
	ctx, cancel := context.WithCancelCause(t.Context())
	s := &served{Conn: NewConn(ours, cfg), peer: theirs, cancel: cancel, result: make(chan error, 1)}
	go func() { s.result <- s.Serve(ctx, app) }() // ends with the test's cancel
	t.Cleanup(func() {
		cancel(errors.New("test is over"))
		theirs.Close()
	})
	return s
}

// say writes what a peer says and waits until all of it was dealt with.
func (s *served) say(t *testing.T, b ...[]byte) {
	t.Helper()
	if _, err := s.peer.Write(slicesOf(b...)); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// hear collects what the peer is told from now on.
func (s *served) hear(t *testing.T) func() string {
	var mu sync.Mutex
	var heard []byte
	go func() { // ends when the pipe is closed
		buf := make([]byte, 1<<16)
		for {
			n, err := s.peer.Read(buf)
			mu.Lock()
			heard = append(heard, buf[:n]...)
			mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return func() string {
		t.Helper()
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		b := heard
		heard = nil
		return printFrames(t, b)
	}
}

func opening() []byte {
	return slicesOf(
		frame.AppendProtocol(nil, frame.ProtocolAMQP),
		encode(0, 0, &frame.Open{ContainerID: "peer", MaxFrameSize: 65536}, nil),
	)
}

func TestServeEndsWhenPeerCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app := newQueueApp()
		s := serve(t, app, Config{})
		heard := s.hear(t)
		s.say(t, opening(), encode(0, 0, new(frame.Close), nil))
		if err := <-s.result; err != nil {
			t.Errorf("Serve returned %v, want nil after a clean close", err)
		}
		if err := <-app.closed; err != nil {
			t.Errorf("the App was told %v, want nil", err)
		}
		if got := heard(); !strings.HasSuffix(got, "> 0 close\n") {
			t.Errorf("the peer was told\n%swant a close", got)
		}
	})
}

func TestServeReportsPeerThatVanished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app := newQueueApp()
		s := serve(t, app, Config{})
		s.hear(t)
		s.say(t, opening())
		s.peer.Close()
		if err := <-s.result; !errors.Is(err, io.EOF) {
			t.Errorf("Serve returned %v, want %v", err, io.EOF)
		}
		err := <-app.closed
		if _, told := errors.AsType[*Error](err); told || !errors.Is(err, io.EOF) {
			t.Errorf("the App was told %v, want %v and nothing for the peer", err, io.EOF)
		}
	})
}

func TestServeTellsPeerWhenStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, newQueueApp(), Config{})
		heard := s.hear(t)
		s.say(t, opening())
		stopping := errors.New("SIGTERM")
		s.cancel(stopping)
		if err := <-s.result; !errors.Is(err, stopping) {
			t.Errorf("Serve returned %v, want %v", err, stopping)
		}
		if got := heard(); !strings.Contains(got, "close error=\"amqp:connection:forced") {
			t.Errorf("the peer was told\n%swant amqp:connection:forced", got)
		}
	})
}

func TestCloseTellsPeerWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, newQueueApp(), Config{})
		heard := s.hear(t)
		s.say(t, opening())
		s.Close(Errorf(CondUnauthorizedAccess, "token expired"))
		if err := <-s.result; err == nil || !strings.Contains(err.Error(), "token expired") {
			t.Errorf("Serve returned %v, want token expired", err)
		}
		if got := heard(); !strings.Contains(got, "close error=\"amqp:unauthorized-access: token expired") {
			t.Errorf("the peer was told\n%s", got)
		}
	})
}

func TestSilentConnectionsAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var all []*served
		for range 1000 {
			all = append(all, serve(t, newQueueApp(), Config{}))
		}
		for _, s := range all {
			if err := <-s.result; !errors.Is(err, errHandshake) {
				t.Fatalf("Serve returned %v, want %v", err, errHandshake)
			}
		}
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("they were dropped after %v, want 10s", took)
		}
	})
}

func TestHalfAFrameAndSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, newQueueApp(), Config{})
		heard := s.hear(t)
		s.say(t, opening(), []byte{0, 0, 1, 0, 2})
		start := time.Now()
		if err := <-s.result; !errors.Is(err, errIdle) {
			t.Fatalf("Serve returned %v, want %v", err, errIdle)
		}
		if took := time.Since(start); took != 2*time.Minute {
			t.Errorf("the peer was dropped after %v, want twice the idle timeout", took)
		}
		if got := heard(); strings.Count(got, "heartbeat") != 7 {
			t.Errorf("in two minutes the peer was told\n%swant a heartbeat every 15 seconds", got)
		}
	})
}

func TestPeerThatStopsReadingIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app := newQueueApp()
		s := serve(t, app, Config{})
		start := time.Now()
		s.say(t, opening()) // and never reads the answer
		<-s.result
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("the peer was cut off after %v, want the write timeout", took)
		}
		if err := <-app.closed; err == nil {
			t.Error("the App was told nil, want a reason")
		}
	})
}

func TestDoRunsEverythingInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, newQueueApp(), Config{})
		s.hear(t)
		s.say(t, opening())
		const goroutines, each = 8, 200
		ran := make([][]int, goroutines) // owned by the connection's context
		var wg sync.WaitGroup
		for g := range goroutines {
			wg.Go(func() {
				for i := range each {
					s.Do(func() { ran[g] = append(ran[g], i) })
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		for g := range ran {
			if len(ran[g]) != each || !slices.IsSorted(ran[g]) {
				t.Errorf("goroutine %d: %d of %d ran, sorted %v", g, len(ran[g]), each, slices.IsSorted(ran[g]))
			}
		}
		s.cancel(errors.New("over"))
		<-s.result
		s.Do(func() { t.Error("ran after the end") })
		synctest.Wait()
	})
}

// crowdedApp has space when it is told so.
type crowdedApp struct {
	*queueApp
	space bool
	sizes []int // that it was asked for
}

func (a *crowdedApp) Reserve(_ *Link, d Arriving) bool {
	a.sizes = append(a.sizes, d.Size())
	a.given = a.space
	return a.space
}

// sending is a peer that has attached a link to send on.
func sending() []byte {
	return slicesOf(opening(),
		encode(0, 0, &frame.Begin{IncomingWindow: 100, HandleMax: 9}, nil),
		encode(0, 0, &frame.Attach{Name: "s", Target: &frame.Target{Address: "q"}}, nil))
}

// A peer whose delivery finds no space is paused, and
// nothing of it is lost, repeated or read ahead.
func TestPeerIsPausedWhileThereIsNoSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app := &crowdedApp{queueApp: newQueueApp(), space: true}
		s := serve(t, app, Config{})
		heard := s.hear(t)
		s.say(t, sending())
		heard()
		s.Do(func() { app.space = false })
		synctest.Wait()
		s.say(t, // in one write: the second is not looked at before the first is done
			encode(0, 0, &frame.Transfer{HasDeliveryID: true, DeliveryTag: []byte("t"), More: true}, []byte("one,")),
			encode(0, 0, &frame.Transfer{}, []byte("two")),
			encode(0, 0, &frame.Transfer{HasDeliveryID: true, DeliveryID: 1, DeliveryTag: []byte("t")}, []byte("three")))
		if got := heard(); got != "" {
			t.Errorf("without space the peer was told\n%s", got)
		}
		// However long it takes: nobody hears whether the peer is silent.
		time.Sleep(time.Hour)
		if got := heard(); strings.Count(got, "\n") != strings.Count(got, "heartbeat") {
			t.Errorf("while it was paused the peer was told\n%s", got)
		}
		s.Resume() // too early
		synctest.Wait()
		s.Do(func() { app.space = true; s.Resume() })
		if got, want := heard(), "> 0 disposition receiver 0-1 settled=true accepted\n"; got != want {
			t.Errorf("with space again the peer was told\n%swant\n%s", got, want)
		}
		if want := []int{7, 7, 7, 5}; !slices.Equal(app.sizes, want) {
			t.Errorf("the App was asked for space for %v, want %v", app.sizes, want)
		}
		if q := app.queue("q"); len(q.ready) != 2 || string(q.ready[0]) != "one,two" || string(q.ready[1]) != "three" {
			t.Errorf("the App got %q", q.ready)
		}
		time.Sleep(2*time.Minute - time.Second) // from now on it has to be heard again
		select {
		case err := <-s.result:
			t.Errorf("the peer was dropped too early: %v", err)
		default:
		}
		time.Sleep(time.Second)
		if err := <-s.result; !errors.Is(err, errIdle) {
			t.Errorf("Serve returned %v, want %v", err, errIdle)
		}
	})
}

func TestPausedPeerIsToldWhenStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app := &crowdedApp{queueApp: newQueueApp()}
		s := serve(t, app, Config{})
		heard := s.hear(t)
		s.say(t, sending(), encode(0, 0, &frame.Transfer{HasDeliveryID: true, DeliveryTag: []byte("t")}, []byte("one")))
		heard()
		s.cancel(errors.New("SIGTERM"))
		<-s.result
		if got := heard(); !strings.Contains(got, "close error=\"amqp:connection:forced") {
			t.Errorf("the peer was told\n%swant amqp:connection:forced", got)
		}
	})
}
