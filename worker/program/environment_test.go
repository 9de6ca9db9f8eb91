// SPDX-License-Identifier: Apache-2.0

package program

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/worker"
)

// set returns the variables of a task that begin with TRIAGEMQ_.
func set(t *worker.Task, more ...string) map[string]string {
	out := map[string]string{}
	for _, entry := range environment(more, t) {
		name, value, _ := strings.Cut(entry, "=")
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			out[rest] = value // the last wins, as it does for a program
		}
	}
	return out
}

// clearSettings removes the settings of the test run.
func clearSettings(t *testing.T) {
	t.Helper()
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, prefix) {
			t.Setenv(name, "") // so that it is back at the end
			os.Unsetenv(name)
		}
	}
}

func TestEnvironment(t *testing.T) {
	clearSettings(t)
	t.Setenv("TRIAGEMQ_CONNECTION_STRING", "stays")
	t.Setenv("TRIAGEMQ_SUBJECT", "of another message")
	t.Setenv("TRIAGEMQ_PROPERTY_OLD", "of another message")
	got := set(&worker.Task{Pool: "night", Received: &client.Received{
		Message: client.Message{
			ID: "m1", Priority: client.High, CorrelationID: "c", ContentType: "text/plain", Session: "s", ReplyTo: "r",
			Properties: map[string]any{
				"count": int64(3), "ok": true, "x-tenant.id": "blue", "when": time.Unix(0, 5e8), "bin": []byte("a"), "empty": "",
				"UMLÄUT": "u",
			},
		},
		SeqNo: 7, Enqueued: time.Unix(1, 0), Source: "q", DeliveryCount: 2, Class: "gold",
	}})
	want := map[string]string{
		"CONNECTION_STRING": "stays",
		"MESSAGE_ID":        "m1", "SEQUENCE_NUMBER": "7", "PRIORITY": "high", "CLASS": "gold", "DELIVERY_COUNT": "2",
		"ENQUEUED": "1970-01-01T00:00:01Z", "SESSION": "s", "CORRELATION_ID": "c", "CONTENT_TYPE": "text/plain", "REPLY_TO": "r",
		"SOURCE": "q", "POOL": "night",
		"PROPERTY_COUNT": "3", "PROPERTY_OK": "true", "PROPERTY_X_TENANT_ID": "blue", "PROPERTY_WHEN": "1970-01-01T00:00:00.5Z",
		"PROPERTY_BIN": "YQ==", "PROPERTY_UML_UT": "u",
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s = %q, want %q", name, got[name], value)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s = %q is not expected", name, got[name])
		}
	}
}

func TestEnvironmentOmitsWhatItCannotHold(t *testing.T) {
	big := map[string]any{"a-b": "first", "a.b": "second", "nul": "a\x00b", "long": strings.Repeat("x", maxValue+1)}
	for i := range 20 {
		big["z"+strings.Repeat("z", i)] = strings.Repeat("x", maxValue)
	}
	env := environment(nil, &worker.Task{Received: &client.Received{Message: client.Message{ID: "a\x00b", Properties: big}}})
	total := 0
	for _, entry := range env {
		if strings.Contains(entry, "\x00") {
			t.Errorf("a program cannot be started with %q", entry[:20])
		}
		if strings.HasPrefix(entry, prefix) {
			total += len(entry)
		}
	}
	if total > maxAll+1024 {
		t.Errorf("%d bytes", total)
	}
	if !slices.Contains(env, "TRIAGEMQ_PROPERTY_A_B=first") {
		t.Error("of two properties with the same variable, the first in byte order is not set")
	}
	if !slices.Contains(env, "TRIAGEMQ_OMITTED=17") { // the identifier, a.b, nul, long, and 13 of the 20
		t.Errorf("omitted: %q", slices.DeleteFunc(env, func(s string) bool { return !strings.HasPrefix(s, "TRIAGEMQ_OMITTED") }))
	}
}

// Senders must not set the variables that programs are loaded by.
func TestSendersCannotChooseVariables(t *testing.T) {
	for _, entry := range environment(nil, &worker.Task{Received: &client.Received{Message: client.Message{Properties: map[string]any{
		"LD_PRELOAD": "evil", "=PATH": "evil", "A=B\nPATH": "evil",
	}}}}) {
		if name, value, _ := strings.Cut(entry, "="); value == "evil" && !strings.HasPrefix(name, propertyPrefix) {
			t.Errorf("%s is set by the sender", name)
		}
	}
}
