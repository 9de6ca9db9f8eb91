// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hostile

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/access"
)

// The keys of the namespace.
var (
	root         = access.Rule{Name: "root", Rights: access.All, PrimaryKey: "the-long-key-of-root"}
	sendKey      = access.Rule{Name: "sender", Rights: access.Send, PrimaryKey: "the-long-key-of-sender"}
	listenKey    = access.Rule{Name: "listener", Rights: access.Listen, PrimaryKey: "the-long-key-of-listener"}
	bystanderKey = access.Rule{Name: "bystander", Rights: access.Send | access.Listen, PrimaryKey: "the-long-key-of-bystander"}
	nobody       = access.Rule{}

	// ownKey is a key of the queue own alone.
	ownKey = access.Rule{Name: "own", Rights: access.Send | access.Listen, PrimaryKey: "the-long-key-of-own"}
)

const (
	fanOut      = 202 // subscriptions of the topic fan
	slowReaders = 16  // subscriptions of the topic heavy
)

// configuration is the configuration of the attacked broker, with more settings
// for its security. Its times are short, so that the test is fast.
func configuration(security ...string) string {
	var b strings.Builder
	b.WriteString("listeners: ['127.0.0.1:0']\n" +
		"storage: {snapshotAfter: 16MiB, cacheSize: 16MiB, segmentSize: 16MiB}\n" +
		"limits: {handshakeTimeout: 3s, writeTimeout: 4s, maxConnections: 2000}\n" +
		"security:\n  rules:\n")
	for _, r := range []access.Rule{root, sendKey, listenKey, bystanderKey} {
		fmt.Fprintf(&b, "    - {name: %s, rights: [%s], primaryKey: %s}\n", r.Name, claims(r), r.PrimaryKey)
	}
	for _, setting := range security {
		fmt.Fprintf(&b, "  %s\n", setting)
	}
	b.WriteString("queues:\n")
	for _, q := range []string{bystanderQueue, "groups", "arrays", "temporary", "peeked", "properties", "dispositions", "credit", "expiring", "frames", "relayed", "site", "noise", "first", "second", "answers"} {
		fmt.Fprintf(&b, "  - {name: %s}\n", q)
	}
	b.WriteString("  - {name: sessions, requiresSession: true}\n" +
		"  - {name: fair, policy: {fairKey: tenant}}\n")
	fmt.Fprintf(&b, "  - {name: own, authorizationRules: [{keyName: %s, rights: [%s], primaryKey: %s}]}\n", ownKey.Name, claims(ownKey), ownKey.PrimaryKey)
	b.WriteString("  - {name: own/below}\n")
	b.WriteString("topics:\n  - {name: rules, subscriptions: [{name: s}]}\n  - {name: doubling, subscriptions: [{name: s}]}\n")
	for name, n := range map[string]int{"fan": fanOut, "heavy": slowReaders} {
		fmt.Fprintf(&b, "  - name: %s\n    subscriptions:\n", name)
		for i := range n {
			fmt.Fprintf(&b, "      - {name: s%d}\n", i)
		}
	}
	b.WriteString(hubs())
	return b.String()
}

// claims writes the rights of a rule for a configuration.
func claims(r access.Rule) string {
	var names []string
	for right, name := range map[access.Rights]string{access.Send: "Send", access.Listen: "Listen", access.Manage: "Manage"} {
		if r.Rights.Has(right) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// scene is one attack: a subtest, and the broker that it plays against. What it opens
// is closed when it is over, before anything is counted.
type scene struct {
	*testing.T
	*broker
	ctx context.Context

	mu       sync.Mutex
	cleanups []func() // guarded by mu
}

// Cleanup runs f at the end of the scene, last in first out.
func (s *scene) Cleanup(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cleanups = append(s.cleanups, f)
}

func (s *scene) end() {
	for _, f := range slices.Backward(s.cleanups) {
		f()
	}
}

// arena runs the scenes.
type arena struct {
	t         *testing.T
	b         *broker         // nil if none is running
	bystander *bystander      // of b
	quiet     []time.Duration // waiting times of the bystander without an attack
	noise     []time.Duration // waiting times during attacks
	memory    int64           // resident at the beginning
}

// sceneTime bounds one scene.
func sceneTime() time.Duration { return time.Duration(scale(2, 10)) * time.Minute }

// attack is a scene with its name.
type attack struct {
	name string
	play func(*scene)
}

// firstRound is the attacks by a peer on connections, tokens, memory and rights.
var firstRound = []attack{
	{"01_long_group_ids", longGroupIDs},
	{"01_long_fair_keys", longFairKeys},
	{"01_long_session_ids", longSessionIDs},
	{"02_batch_times_subscriptions", batchTimesSubscriptions},
	{"03_rules_with_long_labels", rulesWithLongLabels},
	{"04_peek_of_wide_arrays", peekOfWideArrays},
	{"05_attaches_with_wide_arrays", attachesWithWideArrays},
	{"06_actions_that_double", actionsThatDouble},
	{"07_withheld_bodies", withheldBodies},
	{"07_bodies_held_open", bodiesHeldOpen},
	{"07_answers_not_read", answersNotRead},
	{"08_strangers_lock_out", unauthenticatedLockOut},
	{"09_slow_receivers", slowReceivers},
	{"22_readers_that_do_not_read", readersThatDoNotRead},
	{"22_batches_of_nothing", batchesOfNothing},
	{"10_revoked_keys", revokedKeys},
	{"11_key_of_another_entity", keyOfAnotherEntity},
	{"12_unfinished_tokens", unfinishedTokens},
	{"12_unfinished_transfers", unfinishedTransfers},
	{"12_temporary_nodes", temporaryNodes},
	{"12_replies_without_credit", repliesWithoutCredit},
	{"12_large_properties", largeProperties},
	{"13_one_disposition_of_many", oneDispositionOfMany},
	{"14_links_after_expiry", linksAfterExpiry},
	{"15_session_of_another", foreignSession},
	{"16_strangers_hold_little", unauthenticatedHoldLittle},
	{"16_headers_after_options", headersAfterOptions},
	{"17_browsers", browsers},
	{"18_credit_underflow", creditUnderflow},
	{"19_sets_after_expiry", setAfterExpiry},
	{"20_webhooks", webhooks},
	{"21_development_on_a_network", developmentOnANetwork},
	{"m_small_frames", smallFrames},
	{"m_relay_to_management", relayToManagement},
	{"m_leaving_in_a_request", leavingInARequest},
}

// TestHostile plays every attack against a broker that may use 512 MiB.
// Scenes that leave most garbage come first, so that it is collected when the last one ends.
func TestHostile(t *testing.T) {
	a := &arena{t: t}
	defer a.close()
	for _, c := range slices.Concat(firstRound, waitingScenes, wireScenes, webScenes, coordinationScenes, definitionScenes, keyScenes, turnScenes) {
		t.Run(c.name, func(t *testing.T) { a.play(t, c.play) })
	}
	quiet, noise := waitsOf(a.quiet), waitsOf(a.noise)
	t.Logf("the bystander, quiet: %v", quiet)
	t.Logf("the bystander, in the noise: %v; %.1f times the quiet p99", noise, float64(noise.p99)/float64(max(1, quiet.p99)))
	t.Run("back_to_the_baseline", a.baseline)
	t.Run("starts_again", a.restart)
}

// ready returns a running broker, a new one on an empty store if the last has
// crashed.
func (a *arena) ready(t *testing.T) *broker {
	t.Helper()
	if a.b != nil && !a.b.Dead() {
		return a.b
	}
	a.close()
	b, err := start(a.t.TempDir(), configuration())
	if err != nil {
		t.Fatal(err)
	}
	a.b = b
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if a.bystander, err = watch(b); err != nil {
		t.Fatalf("the bystander: %v", err)
	}
	a.bystander.rest(b)
	a.bystander.report() // of its first round it waits longer
	pause(ctx, time.Second)
	quiet, err := a.bystander.report()
	if err != nil {
		t.Fatalf("the bystander, before any attack: %v", err)
	}
	a.quiet = append(a.quiet, quiet...)
	if a.memory == 0 {
		a.memory, _ = b.resident()
	}
	return b
}

func (a *arena) close() {
	if a.bystander != nil {
		a.bystander.stop()
		a.bystander = nil
	}
	if a.b != nil && !a.b.Dead() {
		if err := a.b.Stop(); err != nil {
			a.t.Errorf("the broker ended with %v\n%s", err, a.b.LastWords())
		}
	}
	a.b = nil
}

// held is the resources of a process.
type held struct {
	goroutines, sockets int
}

func (a *arena) held(ctx context.Context) (h held, err error) {
	n, err := a.b.metric(ctx, "go_goroutines")
	return held{int(n), a.b.sockets()}, err
}

// play runs one scene and checks the broker after it.
func (a *arena) play(t *testing.T, scenario func(*scene)) {
	b := a.ready(t)
	ctx, cancel := context.WithTimeout(t.Context(), sceneTime())
	defer cancel()
	before, err := a.held(ctx)
	if err != nil {
		t.Fatal(err)
	}
	b.resetPeak()
	a.bystander.report()
	begin := time.Now()
	s := &scene{T: t, broker: b, ctx: ctx}
	defer func() { // also when the scene was aborted
		s.end()
		a.judge(t, before, time.Since(begin))
	}()
	scenario(s)
}

// judge fails the test if the broker did not survive the scene within its
// limits.
func (a *arena) judge(t *testing.T, before held, took time.Duration) {
	a.bystander.rest(a.b)
	_, peak := a.b.resident()
	waited, fault := a.bystander.report()
	a.noise = append(a.noise, waited...)
	if a.b.Dead() {
		peak = a.b.peak.Load()
	}
	t.Logf("%.1fs; at most %d MiB; bystander: %v (quiet: %v)", took.Seconds(), peak>>20, waitsOf(waited), waitsOf(a.quiet))
	if a.b.Dead() {
		t.Errorf("the broker has crashed: %v\n%s", a.b.Err, a.b.LastWords())
		return
	}
	if fault != nil {
		t.Errorf("the bystander could not %v", fault)
	}
	if peak > maxResident {
		t.Errorf("the broker used %d MiB, at most %d MiB are allowed", peak>>20, int64(maxResident)>>20)
	} else {
		a.comesBack(t, before)
	}
	if t.Failed() {
		a.b.Kill() // the next scene is not to die of this one
	}
}

const (
	spareGoroutines = 8 // that come and go in a broker where nothing happens
	spareSockets    = 2
)

// comesBack waits until the broker uses no more resources than before.
func (a *arena) comesBack(t *testing.T, before held) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(scale(10, 60))*time.Second)
	defer cancel()
	for {
		now, err := a.held(ctx)
		if err == nil && now.goroutines <= before.goroutines+spareGoroutines && now.sockets <= before.sockets+spareSockets {
			return
		}
		if pause(ctx, 50*time.Millisecond); ctx.Err() != nil {
			t.Errorf("it has %+v, before it had %+v (%v)", now, before, err)
			return
		}
	}
}

// spareMemory is the memory that a broker may use beyond its initial value: the
// bodies and the index of the messages that were left in its queues, and what
// the collector has not freed yet.
const spareMemory = 128 << 20

// collectsBy is when an idle process has collected its garbage and given the memory back: Go
// collects every two minutes if nothing is allocated.
const collectsBy = 150 * time.Second

// baseline waits until the memory is back at its initial value.
func (a *arena) baseline(t *testing.T) {
	b := a.ready(t)
	ctx, cancel := context.WithTimeout(t.Context(), collectsBy)
	defer cancel()
	begin := time.Now()
	for {
		now, _ := b.resident()
		if now <= a.memory+spareMemory {
			t.Logf("resident: %d MiB after %.1fs, at the beginning %d MiB", now>>20, time.Since(begin).Seconds(), a.memory>>20)
			return
		}
		if pause(ctx, 100*time.Millisecond); ctx.Err() != nil {
			heap, _ := b.metric(t.Context(), "go_memstats_heap_alloc_bytes")
			t.Errorf("resident: %d MiB, at the beginning %d MiB; %.0f MiB of the heap are in use", now>>20, a.memory>>20, heap/(1<<20))
			return
		}
	}
}

// restart stops the broker cleanly and starts it again on its store.
func (a *arena) restart(t *testing.T) {
	dir := a.ready(t).dir
	a.close()
	b, err := start(dir, configuration())
	if err != nil {
		t.Fatal(err)
	}
	a.b = b
	if a.bystander, err = watch(b); err != nil {
		t.Fatalf("the bystander: %v", err)
	}
	a.bystander.rest(b)
	if waited, err := a.bystander.report(); err != nil || len(waited) == 0 {
		t.Errorf("the bystander after the restart: %d operations, %v", len(waited), err)
	}
}
