// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/config"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// documents have an example of a policy, with a class paying and a class free.
var documents = []string{"../../README.md", "../../docs/guide/priorities.md"}

// documented returns the text of a document and the policy that it shows first.
func documented(t *testing.T, file string) (string, *Policy) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?s)```yaml\n(queues:\n  - name: [a-z]+\n    policy:\n.*?)```").FindSubmatch(text)
	if example == nil {
		t.Fatalf("%s has no policy", file)
	}
	c, err := config.Parse(example[1])
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	p, err := Parse(c.Queues[0].Policy)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return string(text), p
}

// Everything that a paying customer sends is paying, except reports.
func TestDocumentedPoliciesTakeWhatTheySay(t *testing.T) {
	for _, file := range documents {
		_, p := documented(t, file)
		for _, tt := range []struct {
			message message.Draft
			want    string
		}{
			{properties("plan", "paid"), "paying"},
			{properties("plan", "paid", "kind", "order"), "paying"},
			{properties("plan", "paid", "tenant", "contoso"), "paying"},
			{properties("plan", "paid", "kind", "report"), "free"},
			{properties("plan", "free"), "free"},
			{properties("plan", "free", "kind", "order"), "free"},
			{message.Draft{}, "free"},
		} {
			if got := p.ClassName(p.Classify(envelope(tt.message)).Class); got != tt.want {
				t.Errorf("%s: %v is in class %q, want %q", file, tt.message.Application, got, tt.want)
			}
		}
		for _, w := range p.Warnings(time.Second) {
			t.Errorf("%s: %v", file, w)
		}
	}
}

// The class paying meets its objective although ten times as much of the class free
// arrives as there are workers for.
func TestDocumentedPoliciesServePayingInTime(t *testing.T) {
	for _, file := range documents {
		_, p := documented(t, file)
		q, now := machine(p.Order()), noon
		var out queue.Effects
		enqueue := func(plan string, n int) {
			v := p.Classify(envelope(properties("plan", plan, "tenant", fmt.Sprint(plan, n%2))))
			a := queue.Arrival{Level: queue.Level(v.Level), Class: queue.Class(v.Class), Key: v.Key}
			if err := q.Enqueue(now, []queue.Arrival{a}, make([]queue.SeqNo, 1), &out); err != nil {
				t.Fatal(err)
			}
		}
		served, inTime, latest := map[string]int{}, map[string]int{}, time.Duration(0)
		for i := range 20 * 60 * 50 { // twenty minutes with fifty deliveries a second
			if i%5 == 0 {
				enqueue("paid", i/5)
			}
			for n := range 10 {
				if free := p.Classes[1]; q.LevelCount(queue.Level(free.Level)) < free.MaxMessages {
					enqueue("free", n)
				}
			}
			if d, ok := q.Take(now, queue.TakeOptions{ReceiveAndDelete: true}, &out); ok {
				c := p.Class(uint8(d.Class))
				served[c.Name]++
				if now.Sub(d.EnqueuedAt) <= c.Objective.Wait {
					inTime[c.Name]++
				}
				latest = max(latest, now.Sub(d.EnqueuedAt))
			}
			out.Reset()
			now = now.Add(20 * time.Millisecond)
		}
		if float64(inTime["paying"]) < p.Classes[0].Objective.Target*float64(served["paying"]) || served["paying"] < 11_000 {
			t.Errorf("%s: %d of %d paying messages start in time", file, inTime["paying"], served["paying"])
		}
		if latest < p.Classes[1].Objective.Wait {
			t.Errorf("%s: nothing is late, there is no flood", file)
		}
	}
}

// The guide shows what policy check prints.
func TestGuideShowsTheConsequencesOfItsPolicy(t *testing.T) {
	text, p := documented(t, "../../docs/guide/priorities.md")
	shown := regexp.MustCompile("(?s)For the policy above:\n\n```\n(.*?)…").FindStringSubmatch(text)
	if shown == nil {
		t.Fatal("the guide does not show what follows from its policy")
	}
	printed := p.Consequences(time.Minute)
	for line := range strings.Lines(shown[1]) {
		if !slices.Contains(printed, strings.TrimSpace(line)) {
			t.Errorf("policy check does not print\n%s", line)
		}
	}
}
