// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/frame"
)

// limited is a context that has a deadline once it has ended, as a layer of a process
// that stops has.
type limited struct {
	context.Context
	until *time.Time
}

func (l limited) Deadline() (time.Time, bool) { return *l.until, !l.until.IsZero() }

// lingering is a pipe of which one half can be closed, as can that of a socket.
type lingering struct{ net.Conn }

func (lingering) CloseWrite() error { return nil }

// silentApp never answers a delivery.
type silentApp struct{ *queueApp }

func (silentApp) Transfer(*Link, *Incoming) {}

// A stop ends in the time it has, whatever the peer and the App do not do.
func TestStopEndsInItsTime(t *testing.T) {
	transfer := encode(0, 0, &frame.Transfer{HasDeliveryID: true, DeliveryTag: []byte("t")}, []byte("one"))
	for _, grace := range []time.Duration{500 * time.Millisecond, 4500 * time.Millisecond, time.Minute} {
		for name, reads := range map[string]bool{"peer that reads": true, "peer that does not read": false} {
			t.Run(name+" "+grace.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ours, theirs := net.Pipe()
					defer theirs.Close()
					var until time.Time
					ctx, cancel := context.WithCancelCause(t.Context())
					c := NewConn(lingering{ours}, Config{})
					result := make(chan error, 1)
					go func() { result <- c.Serve(limited{ctx, &until}, silentApp{newQueueApp()}) }()
					stalled := make(chan struct{})
					go func() { // ends with the pipe
						buf := make([]byte, 1<<10)
						for {
							if _, err := theirs.Read(buf); err != nil {
								return
							}
							select {
							case <-stalled:
								if !reads {
									return
								}
							default:
							}
						}
					}()
					theirs.Write(slicesOf(sending(), transfer))
					synctest.Wait()
					close(stalled)
					began := time.Now()
					until = began.Add(grace)
					cancel(errors.New("SIGTERM"))
					<-result
					if took := time.Since(began); took > grace {
						t.Errorf("it took %v of %v", took, grace)
					}
					_, _ = io.Copy(io.Discard, theirs)
				})
			})
		}
	}
}
