// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/queueserver"
	"github.com/triagemq/triagemq/internal/streamserver"
)

// fakeLogs has logs without events.
type fakeLogs struct {
	mu   sync.Mutex
	logs map[string]streamserver.Settings // guarded by mu
	fail error                            // of each method

	configuring func() // called by Configure; nil is nothing
	condemning  func() // called by Condemn; nil is nothing
	kept        []string
}

func newFakeLogs() *fakeLogs { return &fakeLogs{logs: map[string]streamserver.Settings{}} }

func (f *fakeLogs) Create(_ context.Context, log string, set streamserver.Settings) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail == nil {
		f.logs[log] = set
	}
	return f.fail
}

func (f *fakeLogs) Configure(_ context.Context, log string, set streamserver.Settings) error {
	if f.configuring != nil {
		f.configuring()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.logs[log]; !ok {
		return errors.New("no such log")
	}
	if f.fail == nil {
		f.logs[log] = set
	}
	return f.fail
}

func (f *fakeLogs) Keep(log string) error {
	f.kept = append(f.kept, log)
	return nil
}

func (f *fakeLogs) Condemn(string) error {
	if f.condemning != nil {
		f.condemning()
	}
	return f.fail
}

func (f *fakeLogs) Remove(_ context.Context, log string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.logs, log)
	return f.fail
}

// all returns the settings of the logs there are.
func (f *fakeLogs) all() []streamserver.Settings {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Values(f.logs))
}

func (c testCatalog) hub(t testing.TB, h entity.Hub) entity.Hub {
	t.Helper()
	h, err := c.CreateHub(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func names(gs []entity.ConsumerGroup) []string {
	var ns []string
	for _, g := range gs {
		ns = append(ns, g.Name)
	}
	return ns
}

// The log of a hub that is deleted is marked while the hub is there: a crash after that
// leaves no events that no hub has.
func TestLogIsCondemnedBeforeTheHubIsDeleted(t *testing.T) {
	logs := newFakeLogs()
	c := startWith(t, logs)
	c.hub(t, entity.Hub{Name: "clicks"})
	calls := 0
	logs.condemning = func() {
		if calls++; c.Entity("clicks") == nil || len(logs.all()) != 1 {
			t.Error("the hub or its log is gone already")
		}
	}
	if err := c.DeleteHub(t.Context(), "clicks"); err != nil || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
}

func TestHubLifecycle(t *testing.T) {
	logs := newFakeLogs()
	c := startWith(t, logs)
	h := c.hub(t, entity.Hub{Name: "Site/Clicks", MaxPartitionSizeInMegabytes: 3})
	if h.PartitionCount != 4 || h.MessageRetention.Std() != 24*time.Hour {
		t.Errorf("created %+v, want the defaults", h)
	}
	want := streamserver.Settings{Partitions: 4, RetainFor: 24 * time.Hour, RetainBytes: 3 << 20}
	if got := logs.all(); len(got) != 1 || got[0] != want {
		t.Fatalf("logs are %+v, want %+v", got, want)
	}
	log := c.Entity("site/clicks").Definition().Log
	if !strings.HasPrefix(log, "site-clicks-") || strings.ContainsAny(log, "/\\") {
		t.Errorf("the log is called %q", log)
	}

	h.PartitionCount, h.MessageRetention = 8, entity.Forever
	if _, err := c.UpdateHub(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	want = streamserver.Settings{Partitions: 8, RetainBytes: 3 << 20}
	if got := logs.all(); len(got) != 1 || got[0] != want {
		t.Errorf("after the update logs are %+v, want %+v", got, want)
	}
	h.PartitionCount = 0
	if got, err := c.UpdateHub(t.Context(), h); err != nil || got.PartitionCount != 8 {
		t.Errorf("an update without a number of partitions: %+v, %v, want 8 of them", got, err)
	}
	h.PartitionCount = 7
	if _, err := c.UpdateHub(t.Context(), h); !errors.Is(err, ErrInvalid) {
		t.Errorf("shrinking: %v, want %v", err, ErrInvalid)
	} else if _, ok := errors.AsType[*entity.UpdateError](err); !ok {
		t.Errorf("shrinking: %v, want an UpdateError", err)
	}
	if got := c.Hubs(); len(got) != 1 || got[0].PartitionCount != 8 || got[0].Name != "Site/Clicks" {
		t.Errorf("hubs are %+v", got)
	}

	if err := c.DeleteHub(t.Context(), "SITE/clicks"); err != nil {
		t.Fatal(err)
	}
	if got := logs.all(); len(got) != 0 {
		t.Errorf("after the deletion logs are %+v", got)
	}
	if _, err := c.Hub("site/clicks"); !errors.Is(err, ErrNotFound) {
		t.Errorf("the deleted hub: %v, want %v", err, ErrNotFound)
	}
	c.hub(t, entity.Hub{Name: "Site/Clicks"})
	if again := c.Entity("site/clicks").Definition().Log; again == log {
		t.Errorf("a new hub of the same name has the same log %q", again)
	}
}

func TestHubNeedsLogs(t *testing.T) {
	c := start(t)
	if _, err := c.CreateHub(t.Context(), entity.Hub{Name: "h"}); !errors.Is(err, ErrNotAllowed) {
		t.Errorf("a hub without logs: %v, want %v", err, ErrNotAllowed)
	}
}

func TestFailedHubLeavesNothing(t *testing.T) {
	logs := newFakeLogs()
	c := startWith(t, logs)
	logs.fail = errors.New("no space")
	if _, err := c.CreateHub(t.Context(), entity.Hub{Name: "h"}); !errors.Is(err, logs.fail) {
		t.Errorf("a hub whose log cannot be made: %v, want %v", err, logs.fail)
	}
	if c.Entity("h") != nil {
		t.Error("a hub without a log exists")
	}
	logs.fail = nil
	if _, err := c.CreateQueue(t.Context(), entity.Queue{Name: "q"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateHub(t.Context(), entity.Hub{Name: "Q"}); !errors.Is(err, ErrExists) {
		t.Errorf("a hub with the name of a queue: %v, want %v", err, ErrExists)
	}
	c.store = failingStore{c.store}
	if _, err := c.CreateHub(t.Context(), entity.Hub{Name: "h"}); !errors.Is(err, errNoStore) {
		t.Errorf("a hub whose definition cannot be stored: %v, want %v", err, errNoStore)
	}
	if got := logs.all(); len(got) != 0 {
		t.Errorf("%d logs are left", len(got))
	}
}

var errNoStore = errors.New("cannot store")

type failingStore struct{ Store }

func (failingStore) Create(*Entity, Stored) (queueserver.ID, error) { return 0, errNoStore }

// A partition is in the log before senders see it, and in the durable definition before it
// is in the log: a crash in between leaves nothing that cannot be repaired.
func TestPartitionsAreAddedInOrder(t *testing.T) {
	logs := newFakeLogs()
	c := startWith(t, logs)
	c.hub(t, entity.Hub{Name: "h", PartitionCount: 2})
	configured := 0
	logs.configuring = func() {
		configured++
		if h, _ := c.Hub("h"); h.PartitionCount != 2 {
			t.Errorf("while the log is configured the hub shows %d partitions", h.PartitionCount)
		}
		again, err := Open(c.shards, logs, c.clock, slog.New(slog.DiscardHandler), nobody{})
		if err != nil {
			t.Error(err)
			return
		}
		if h, _ := again.Hub("h"); h.PartitionCount != 3 {
			t.Errorf("after a crash now the hub has %d partitions, want 3", h.PartitionCount)
		}
	}
	if _, err := c.UpdateHub(t.Context(), entity.Hub{Name: "h", PartitionCount: 3}); err != nil || configured != 1 {
		t.Fatalf("configured %d times, %v", configured, err)
	}
	if _, err := c.UpdateHub(t.Context(), entity.Hub{Name: "h", UserMetadata: "x"}); err != nil || configured != 1 {
		t.Errorf("a change that does not concern the log: configured %d times, %v", configured, err)
	}
	logs.configuring, logs.fail = nil, errors.New("no space")
	if _, err := c.UpdateHub(t.Context(), entity.Hub{Name: "h", PartitionCount: 4}); !errors.Is(err, logs.fail) || !strings.Contains(err.Error(), "next start") {
		t.Errorf("a log that cannot be configured: %v", err)
	}
	if h, _ := c.Hub("h"); h.PartitionCount != 4 {
		t.Errorf("the hub shows %d partitions, want what is durable", h.PartitionCount)
	}
}

func TestConsumerGroups(t *testing.T) {
	c := startWith(t, newFakeLogs())
	c.hub(t, entity.Hub{Name: "h", ConsumerGroups: []entity.ConsumerGroup{{Name: "b"}}})
	list := func() []string {
		t.Helper()
		gs, err := c.ConsumerGroups("H")
		if err != nil {
			t.Fatal(err)
		}
		return names(gs)
	}
	if got, want := list(), []string{"$Default", "b"}; !slices.Equal(got, want) {
		t.Errorf("groups are %v, want %v", got, want)
	}
	g, err := c.CreateConsumerGroup(t.Context(), "h", entity.ConsumerGroup{Name: "A", UserMetadata: "ours"})
	if err != nil || g.CreatedAt.IsZero() {
		t.Fatalf("created %+v, %v", g, err)
	}
	for _, name := range []string{"a", "$DEFAULT"} {
		if _, err := c.CreateConsumerGroup(t.Context(), "h", entity.ConsumerGroup{Name: name}); !errors.Is(err, ErrExists) {
			t.Errorf("group %q once more: %v, want %v", name, err, ErrExists)
		}
	}
	if _, err := c.CreateConsumerGroup(t.Context(), "h", entity.ConsumerGroup{Name: "a/b"}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a bad name: %v, want %v", err, ErrInvalid)
	}
	if got, want := list(), []string{"$Default", "A", "b"}; !slices.Equal(got, want) {
		t.Errorf("groups are %v, want %v", got, want)
	}
	u, err := c.UpdateConsumerGroup(t.Context(), "h", entity.ConsumerGroup{Name: "$default", UserMetadata: "all"})
	if err != nil || u.Name != "$Default" || u.CreatedAt != c.Entity("h").Definition().Created {
		t.Errorf("updated %+v, %v", u, err)
	}
	if got, err := c.ConsumerGroup("h", "$Default"); err != nil || got != u {
		t.Errorf("$Default is %+v, %v, want %+v", got, err, u)
	}
	if err := c.DeleteConsumerGroup(t.Context(), "h", "$default"); !errors.Is(err, ErrNotAllowed) {
		t.Errorf("deleting $Default: %v, want %v", err, ErrNotAllowed)
	}
	var told []string
	c.OnChange(func(name string) { told = append(told, name) })
	if err := c.DeleteConsumerGroup(t.Context(), "h", "B"); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(told, []string{"h"}) {
		t.Errorf("the deletion of a group is told of %v, want h: its readers have to go", told)
	}
	if err := c.DeleteConsumerGroup(t.Context(), "h", "b"); !errors.Is(err, ErrNotFound) {
		t.Errorf("deleting what is not there: %v, want %v", err, ErrNotFound)
	}
	if got, want := list(), []string{"$Default", "A"}; !slices.Equal(got, want) {
		t.Errorf("groups are %v, want %v", got, want)
	}
	if _, err := c.ConsumerGroups("other"); !errors.Is(err, ErrNotFound) {
		t.Errorf("groups of no hub: %v, want %v", err, ErrNotFound)
	}

	// An update without groups leaves them, one with groups replaces them.
	if _, err := c.UpdateHub(t.Context(), entity.Hub{Name: "h"}); err != nil {
		t.Fatal(err)
	}
	if got, err := c.ConsumerGroup("h", "a"); err != nil || got != g {
		t.Errorf("after an update the group is %+v, %v, want %+v", got, err, g)
	}
	if _, err := c.UpdateHub(t.Context(), entity.Hub{Name: "h", ConsumerGroups: []entity.ConsumerGroup{}}); err != nil {
		t.Fatal(err)
	}
	if got, want := list(), []string{"$Default"}; !slices.Equal(got, want) {
		t.Errorf("groups are %v, want %v", got, want)
	}
}

func TestConsumerGroupsAreLimited(t *testing.T) {
	c := startWith(t, newFakeLogs())
	h := entity.Hub{Name: "h"}
	for i := range limits.ConsumerGroups {
		h.ConsumerGroups = append(h.ConsumerGroups, entity.ConsumerGroup{Name: fmt.Sprint("g", i)})
	}
	c.hub(t, h)
	if _, err := c.CreateConsumerGroup(t.Context(), "h", entity.ConsumerGroup{Name: "more"}); !errors.Is(err, ErrQuota) {
		t.Errorf("one group too many: %v, want %v", err, ErrQuota)
	}
}

func TestHubsAreLimited(t *testing.T) {
	logs := newFakeLogs()
	c := startWith(t, logs)
	for i := range limits.Hubs {
		c.hub(t, entity.Hub{Name: fmt.Sprint("h", i)})
	}
	if _, err := c.CreateHub(t.Context(), entity.Hub{Name: "more"}); !errors.Is(err, ErrQuota) || len(logs.all()) != limits.Hubs {
		t.Errorf("one hub too many: %v, want %v; there are %d logs", err, ErrQuota, len(logs.all()))
	}
	if err := c.DeleteHub(t.Context(), "h7"); err != nil {
		t.Fatal(err)
	}
	c.hub(t, entity.Hub{Name: "more"})
}

// TestHubIsNoQueue tries on a hub what only queues and topics have, and addresses of hubs
// on a queue.
func TestHubIsNoQueue(t *testing.T) {
	c := startWith(t, newFakeLogs())
	c.hub(t, entity.Hub{Name: "h", ConsumerGroups: []entity.ConsumerGroup{{Name: "g"}}})
	if _, err := c.CreateQueue(t.Context(), entity.Queue{Name: "q"}); err != nil {
		t.Fatal(err)
	}
	check := func(what string, err, want error, text string) {
		t.Helper()
		if !errors.Is(err, want) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v, want %v with %q", what, err, want, text)
		}
	}
	_, err := c.Writable("h")
	check("send", err, ErrNotAllowed, "event hub")
	_, _, err = c.Readable("h")
	check("receive", err, ErrNotAllowed, "event hub")
	_, err = c.PolicyEntity("h")
	check("policy", err, ErrNotAllowed, "event hub")
	check("pause", c.Pause(t.Context(), "h", Pause{Sending: true}), ErrNotAllowed, "event hub")
	_, err = c.Queue("h")
	check("queue", err, ErrNotFound, "it is a hub")
	_, err = c.UpdateQueue(t.Context(), entity.Queue{Name: "h"})
	check("update as a queue", err, ErrNotFound, "it is a hub")
	check("delete as a queue", c.DeleteQueue(t.Context(), "h"), ErrNotFound, "it is a hub")
	check("delete as a topic", c.DeleteTopic(t.Context(), "h"), ErrNotFound, "it is a hub")
	check("delete as a hub", c.DeleteHub(t.Context(), "q"), ErrNotFound, "it is a queue")
	_, err = c.CreateSubscription(t.Context(), "h", entity.Subscription{Name: "s"})
	check("subscribe", err, ErrNotFound, "it is a hub")
	_, err = c.CreateQueue(t.Context(), entity.Queue{Name: "h"})
	check("create a queue", err, ErrExists, "is a hub")
	_, err = c.CreateQueue(t.Context(), entity.Queue{Name: "f", ForwardTo: "h"})
	check("forward", err, ErrInvalid, "event hub")
	_, err = c.CreateQueue(t.Context(), entity.Queue{Name: "f", ForwardDeadLetteredMessagesTo: "H"})
	check("forward dead letters", err, ErrInvalid, "event hub")

	for addr, want := range map[string]error{
		"h": nil, "h/Partitions/9": nil, "h/ConsumerGroups/G": nil, "h/ConsumerGroups/$default/Partitions/x": nil, "h/Publishers/p": nil,
		"h/ConsumerGroups/other/Partitions/0": ErrNotFound, "h/$DeadLetterQueue": ErrNotFound,
		"q/Partitions/0": ErrNotFound, "q/ConsumerGroups/$Default": ErrNotFound, "q/Publishers/p": ErrNotFound, "other/Partitions/0": ErrNotFound,
		"q": nil, "h/$management": ErrNotAllowed,
	} {
		if _, err := c.Resolve(addr); !errors.Is(err, want) {
			t.Errorf("Resolve(%q): %v, want %v", addr, err, want)
		}
	}
	if n, p, err := c.FindHub("H/consumergroups/G/partitions/1"); err != nil || n.Path != "h" || p.Group != "G" || p.Partition != "1" {
		t.Errorf("FindHub = %v, %+v, %v", n, p, err)
	}
	_, _, err = c.FindHub("q")
	check("a queue as a hub", err, ErrNotAllowed, "is a queue")
}

func TestHubSurvivesARestart(t *testing.T) {
	logs := newFakeLogs()
	c := startWith(t, logs)
	c.hub(t, entity.Hub{Name: "h", PartitionCount: 2, AuthorizationRules: entity.AuthorizationRules{
		{KeyName: "k", Rights: []entity.Right{entity.Listen}, PrimaryKey: "0123456789abcdef"}}})
	if _, err := c.CreateConsumerGroup(t.Context(), "h", entity.ConsumerGroup{Name: "g"}); err != nil {
		t.Fatal(err)
	}
	again, err := Open(c.shards, logs, c.clock, slog.New(slog.DiscardHandler), nobody{})
	if err != nil {
		t.Fatal(err)
	}
	if h, err := again.Hub("h"); err != nil || h.PartitionCount != 2 || !slices.Equal(names(h.ConsumerGroups), []string{"g"}) {
		t.Errorf("after a restart the hub is %+v, %v", h, err)
	}
	was, is := c.Entity("h").Definition(), again.Entity("h").Definition()
	if is.Log != was.Log || is.LogSettings() != was.LogSettings() {
		t.Errorf("after a restart the log is %q %+v, want %q %+v", is.Log, is.LogSettings(), was.Log, was.LogSettings())
	}
	if _, rules, ok := again.Authorization("h"); !ok || len(rules) != 1 || rules[0].KeyName != "k" {
		t.Errorf("the access rules are %v", rules)
	}
}
