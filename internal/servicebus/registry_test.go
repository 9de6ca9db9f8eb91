// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"slices"
	"testing"

	"github.com/Azure/go-amqp"
)

func TestConnectionsAreListedWithTheirLinks(t *testing.T) {
	b := start(t)
	if got, _ := b.service.Connections(t.Context(), 0, 10); len(got) != 0 {
		t.Fatalf("before anybody came: %+v", got)
	}
	first, err := b.dial(t, b.keeper, &amqp.ConnOptions{
		ContainerID: "first", SASLType: amqp.SASLTypePlain(rootRule.Name, rootRule.PrimaryKey),
		Properties: map[string]any{"product": "tester", "version": "7"},
	})
	if err != nil {
		t.Fatal(err)
	}
	first.sender("q")
	first.receiver("t/Subscriptions/s", peekLock())
	second := b.login(t, rootRule)
	second.sender("q") // has opened for certain

	got, _ := b.service.Connections(t.Context(), 0, 10)
	if len(got) != 2 {
		t.Fatalf("%d connections, want 2: %+v", len(got), got)
	}
	if got[0].Client != "tester 7" || got[0].Since.IsZero() || got[0].Peer == "" {
		t.Errorf("first: %+v, want the name of its software", got[0])
	}
	var links []string
	for _, l := range got[0].Links {
		links = append(links, l.Role+" "+l.Address)
	}
	slices.Sort(links)
	if want := []string{"receiver t/Subscriptions/s", "sender q"}; !slices.Equal(links, want) {
		t.Errorf("its links: %v, want %v", links, want)
	}

	if got, total := b.service.Connections(t.Context(), 1, 10); len(got) != 1 || total != 2 || got[0].Client == "tester 7" {
		t.Errorf("the second of %d: %+v", total, got)
	}
	if got, total := b.service.Connections(t.Context(), 0, 1); len(got) != 1 || total != 2 || got[0].Client != "tester 7" {
		t.Errorf("the first of %d: %+v", total, got)
	}

	second.Close()
	<-second.served
	if got, _ := b.service.Connections(t.Context(), 0, 10); len(got) != 1 || got[0].Client != "tester 7" {
		t.Errorf("after one left: %+v", got)
	}
}
