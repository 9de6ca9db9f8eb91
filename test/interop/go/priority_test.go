// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"fmt"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// The example of the pattern, on one plain queue: ten Low, then ten High.
func TestHighComesBeforeLow(t *testing.T) {
	t.Parallel()
	q := open(t, "priorities")
	var want []string
	for _, p := range []string{"Low", "High"} {
		for i := range 10 {
			q.sendMessage(&azservicebus.Message{
				Body: fmt.Appendf(nil, "%s-%d", p, i), ApplicationProperties: map[string]any{"Priority": p},
			})
		}
	}
	for _, p := range []string{"High", "Low"} {
		for i := range 10 {
			want = append(want, fmt.Sprintf("%s-%d", p, i))
		}
	}
	ms := q.receive(20)
	if got := bodies(ms); got != strings.Join(want, " ") {
		t.Errorf("received %s\nwant %s", got, strings.Join(want, " "))
	}
	q.complete(ms...)
}

func TestHeaderPriorityOrders(t *testing.T) {
	t.Parallel()
	q := open(t, "header-priorities")
	for _, level := range []uint8{1, 200, 9, 200, 1, 100} {
		m := &azservicebus.AMQPAnnotatedMessage{
			Body:   azservicebus.AMQPAnnotatedMessageBody{Data: [][]byte{fmt.Append(nil, level)}},
			Header: &azservicebus.AMQPAnnotatedMessageHeader{Priority: level},
		}
		if err := q.SendAMQPAnnotatedMessage(q.ctx, m, nil); err != nil {
			t.Fatal(err)
		}
	}
	q.send("plain") // no header: level 4
	ms := q.receive(7)
	if got, want := bodies(ms), "200 200 100 9 plain 1 1"; got != want {
		t.Errorf("received %q, want %q", got, want)
	}
	q.complete(ms...)
}

// The highest message is received next, even if it is sent last; an abandoned
// message returns to its position.
func TestLateUrgentMessageIsNext(t *testing.T) {
	t.Parallel()
	q := open(t, "urgent-late")
	q.send("n1", "n2", "n3")
	first := q.one()
	q.sendMessage(&azservicebus.Message{Body: []byte("urgent"), ApplicationProperties: map[string]any{"Priority": "critical"}})
	if err := q.AbandonMessage(q.ctx, first, nil); err != nil {
		t.Fatal(err)
	}
	var got []string
	for range 4 {
		m := q.one()
		got = append(got, string(m.Body))
		q.complete(m)
	}
	if want := "urgent n1 n2 n3"; strings.Join(got, " ") != want {
		t.Errorf("received %q, want %q", strings.Join(got, " "), want)
	}
}
