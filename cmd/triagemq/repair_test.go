// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/cli"
)

// damageRecord changes a byte of the first record in the store that a dump shows so.
func damageRecord(t *testing.T, data, record, about string) {
	t.Helper()
	const segmentSize, frameHeader = 64 << 20, 24
	out, errs, code := journalRun(t, data, "dump", "--json")
	if code != 0 {
		t.Fatalf("dump: code %d, %s", code, errs)
	}
	for line := range strings.Lines(out) {
		var shown struct {
			File, Record, About string
			Position            int64
		}
		if err := json.Unmarshal([]byte(line), &shown); err != nil {
			t.Fatalf("dump: %v in %s", err, line)
		}
		if shown.Record != record || !regexp.MustCompile(about).MatchString(shown.About) {
			continue
		}
		f, err := os.OpenFile(filepath.Join(data, shown.File), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var b [1]byte
		at := shown.Position%segmentSize + frameHeader
		if _, err := f.ReadAt(b[:], at); err != nil {
			t.Fatal(err)
		}
		b[0] ^= 0x10
		if _, err := f.WriteAt(b[:], at); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("no record %q about %q in\n%s", record, about, out)
}

// A record in the middle of the log is damaged, and a repair drops it. The broker starts,
// says what is lost, and serves everything else.
func TestBrokerStartsWithoutARecord(t *testing.T) {
	for name, c := range map[string]struct {
		record, about string            // what is damaged
		warning       string            // in the log
		want          map[string]string // bodies, where they are not all there
	}{
		"a message": {"enqueue", "1 from message 2 on", `messages are lost.* entity=a .*messages=1`,
			map[string]string{"a": "first\nthird\n"}},
		"a body": {"body", "", `a repair has dropped`,
			map[string]string{"a": "second\nthird\n"}},
		"a queue": {"create", `"b"`, `definition of an entity is lost`,
			map[string]string{"b": ""}},
		"a topic": {"create", `"t"$`, `subscription is not served, since its topic is lost.*entity=t/Subscriptions/s`,
			map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			data, file := filepath.Join(dir, "data"), filepath.Join(dir, "c.yaml")
			writeText(t, file, "queues: [{name: a}, {name: b}, {name: c}]\ntopics: [{name: t, subscriptions: [{name: s}]}]\nstorage: {shards: 2}\n")
			p := serveOn(t, data, "--config", file)
			key := p.wait(&p.out, connection)
			for _, to := range []string{"a", "b", "c", "t"} {
				for _, body := range []string{"first", "second", "third"} {
					command(t, "send", to, "--body", body, "--connection-string", key)
				}
			}
			if code := p.stop(); code != 0 {
				t.Fatalf("stop: code %d, %s", code, p.err.String())
			}
			damageRecord(t, data, c.record, c.about)
			refused := serveOn(t, data, "--config", file)
			if code := refused.code(); code == 0 || !strings.Contains(refused.err.String(), "journal repair") {
				t.Fatalf("start on damage: code %d, %s", code, refused.err.String())
			}
			if out, errs, code := journalRun(t, data, "repair", "--drop-damaged"); code != cli.ExitFailed || !strings.Contains(out, "dropped: ") {
				t.Fatalf("repair: code %d, %s%s", code, out, errs)
			}
			p = serveOn(t, data, "--config", file)
			address := p.wait(&p.out, listening)
			p.wait(&p.err, c.warning)
			p.wait(&p.err, `a repair has dropped records of the journal.*records=1\b`)
			at := regexp.MustCompile(`Endpoint=sb://[^;]*`).ReplaceAllString(key, "Endpoint=sb://"+address)
			for _, from := range []string{"a", "b", "c", "t"} {
				want, changed := c.want[from]
				if !changed {
					want = "first\nsecond\nthird\n"
				}
				args := []string{"receive", from, "-n", "0", "--wait", "100ms", "--body-only", "--connection-string", at}
				if from == "t" {
					args = append(args, "--subscription", "s")
				}
				if code, got, errs := try(t, args...); got != want {
					t.Errorf("%s: code %d, got %q, want %q; %s", from, code, got, want, errs)
				}
			}
			if got := command(t, "deadletter", "list", "a", "--connection-string", at); strings.Contains(got, "MessageUnreadable") != (name == "a body") {
				t.Errorf("dead letters:\n%s", got)
			}
			if code := p.stop(); code != 0 {
				t.Errorf("stop: code %d, %s", code, p.err.String())
			}
		})
	}
}
