// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/filter/value"
	"github.com/triagemq/triagemq/internal/message"
)

func described(symbol string, v codec.Value) codec.Value {
	return codec.Raw(codec.AppendValue(codec.AppendSymbol([]byte{0}, symbol), v))
}

// fullDraft sets everything a sender can.
func fullDraft() message.Draft {
	return message.Draft{
		Durable: true, TTL: time.Minute,
		MessageID: codec.String("m-1"), CorrelationID: codec.UUID([16]byte{0xab}), To: "to", Subject: "label",
		ReplyTo: "reply", ContentType: "text/plain", SessionID: "s", ReplyToSessionID: "rs",
		Annotations: []message.Pair{
			{Name: message.AnnotationPartitionKey, Value: codec.String("pk")},
			{Name: message.AnnotationViaPartitionKey, Value: codec.String("via")},
			{Name: message.AnnotationScheduledEnqueueTime, Value: codec.Timestamp(noon)},
		},
		Application: []message.Pair{
			{Name: "bool", Value: codec.Bool(true)}, {Name: "ubyte", Value: codec.Ubyte(200)}, {Name: "ushort", Value: codec.Ushort(60000)},
			{Name: "uint", Value: codec.Uint(4e9)}, {Name: "ulong", Value: codec.Ulong(math.MaxUint64)}, {Name: "byte", Value: codec.Byte(-5)},
			{Name: "short", Value: codec.Short(-300)}, {Name: "int", Value: codec.Int(-70000)}, {Name: "long", Value: codec.Long(-5e12)},
			{Name: "float", Value: codec.Float(1.5)}, {Name: "double", Value: codec.Double(0.1)}, {Name: "char", Value: codec.Char('x')},
			{Name: "wide", Value: codec.Char('ß')}, {Name: "time", Value: codec.Timestamp(noon)}, {Name: "uuid", Value: codec.UUID([16]byte{1})},
			{Name: "binary", Value: codec.Binary([]byte{1, 2})}, {Name: "string", Value: codec.String("s")}, {Name: "symbol", Value: codec.Symbol("sy")},
			{Name: "null", Value: codec.Value{}}, {Name: "span", Value: described("com.microsoft:timespan", codec.Long(900_000_000))},
			{Name: "offset", Value: described("com.microsoft:datetime-offset", codec.Long(621_355_968_010_000_000))},
			{Name: "uri", Value: described("com.microsoft:uri", codec.String("http://x/"))}, {Name: "odd", Value: described("odd", codec.Long(1))},
			{Name: "Case", Value: codec.Int(1)}, {Name: "case", Value: codec.Int(2)},
		},
	}
}

func TestEnvelopeReadsEveryType(t *testing.T) {
	d := fullDraft()
	e := &Envelope{Message: d.Message()}
	for name, want := range map[string]value.Value{
		"bool": value.MakeBool(true), "ubyte": value.MakeInt(200).WithWidth(value.Uint8), "ushort": value.MakeInt(60000).WithWidth(value.Uint16),
		"uint": value.MakeInt(4e9).WithWidth(value.Uint32), "ulong": value.MakeUint(math.MaxUint64).WithWidth(value.Uint64), "byte": value.MakeInt(-5).WithWidth(value.Int8),
		"short": value.MakeInt(-300).WithWidth(value.Int16), "int": value.MakeInt(-70000).WithWidth(value.Int32), "long": value.MakeInt(-5e12),
		"float": value.MakeDouble(1.5).WithWidth(value.Float32), "double": value.MakeDouble(0.1), "char": value.MakeString("x"), "wide": value.MakeString("ß"),
		"time": value.MakeTime(noon), "uuid": value.MakeUUID([16]byte{1}), "binary": value.MakeBinary("\x01\x02"), "string": value.MakeString("s"),
		"symbol": value.MakeString("sy"), "null": value.MakeNull(), "span": value.MakeDuration(90 * time.Second), "offset": value.MakeTime(time.Unix(1, 0)),
		"uri": value.MakeString("http://x/"), "odd": value.MakeOpaque(),
		"Case": value.MakeInt(1).WithWidth(value.Int32), "case": value.MakeInt(2).WithWidth(value.Int32), "CASE": value.MakeInt(1).WithWidth(value.Int32),
	} {
		if got := e.User(name); got == nil || *got != want {
			t.Errorf("property %s is %v, want %v", name, got, want)
		}
	}
	if got := e.User("missing"); got != nil {
		t.Errorf("a missing property is %v, want none", got)
	}
	// A value that can be written is read back unchanged; a char is read back as a
	// string.
	for _, p := range d.Application {
		v := value.FromWire(p.Value)
		if p.Name == "odd" || p.Name == "wide" || p.Name == "char" {
			continue
		}
		if back := value.FromWire(value.ToWire(v)); back != v {
			t.Errorf("%s: %v was written and read back as %v", p.Name, v, back)
		}
	}
}

func TestEnvelopeSystemProperties(t *testing.T) {
	d := fullDraft()
	e := &Envelope{
		Message: d.Message(),
		BrokerProperties: message.BrokerProperties{
			SequenceNumber: 7, EnqueuedSequenceNumber: 3, EnqueuedTime: noon, LockedUntil: noon.Add(time.Minute), HasLock: true,
			LockToken: [16]byte{9}, DeliveryCount: 2, State: message.StateDeferred, DeadLetterSource: "dlq",
		},
	}
	want := map[SystemName]value.Value{
		MessageID: value.MakeString("m-1"), CorrelationID: value.MakeString("ab000000-0000-0000-0000-000000000000"), To: value.MakeString("to"),
		Subject: value.MakeString("label"), ReplyTo: value.MakeString("reply"), ContentType: value.MakeString("text/plain"), SessionID: value.MakeString("s"),
		ReplyToSessionID: value.MakeString("rs"), PartitionKey: value.MakeString("pk"), ViaPartitionKey: value.MakeString("via"),
		ScheduledEnqueueTimeUTC: value.MakeTime(noon), TimeToLive: value.MakeDuration(time.Minute), ForcePersistence: value.MakeBool(true),
		SequenceNumber: value.MakeInt(7), EnqueuedSequenceNumber: value.MakeInt(3), EnqueuedTimeUTC: value.MakeTime(noon),
		LockedUntilUTC: value.MakeTime(noon.Add(time.Minute)), LockToken: value.MakeUUID([16]byte{9}), DeliveryCount: value.MakeInt(2), State: value.MakeInt(1),
		DeadLetterSource: value.MakeString("dlq"), ExpiresAtUTC: value.MakeTime(noon.Add(time.Minute)), Size: value.MakeInt(int64(e.Message.Size())),
	}
	for n := MessageID; n < systemNames; n++ {
		if got := e.System(n); got == nil || *got != want[n] {
			t.Errorf("sys.%v is %v, want %v", n, got, want[n])
		}
	}
	bare := message.Draft{}
	e.Message, e.BrokerProperties = bare.Message(), message.BrokerProperties{}
	for n := MessageID; n < systemNames; n++ {
		var want string
		switch n {
		case TimeToLive:
			want = "P10675199DT2H48M5.4775807S"
		case ForcePersistence:
			want = "FALSE"
		case DeliveryCount, State:
			want = "0"
		case Size:
			want = fmt.Sprint(e.Message.Size())
		case SequenceNumber, EnqueuedSequenceNumber, EnqueuedTimeUTC, ExpiresAtUTC, LockedUntilUTC, LockToken:
			if got := e.System(n); got != nil {
				t.Errorf("sys.%v of a fresh message is %v, want none yet", n, got)
			}
			continue
		default:
			want = "NULL"
		}
		if got := e.System(n); got == nil || got.String() != want {
			t.Errorf("sys.%v of a bare message is %v, want %s", n, got, want)
		}
	}
	e.BrokerProperties.EnqueuedTime = noon
	if got := e.System(ExpiresAtUTC); got == nil || got.String() != "9999-12-31T23:59:59.9999999Z" {
		t.Errorf("a message without time to live expires at %v", got)
	}
}

func TestEnvelopeLongTimeToLive(t *testing.T) {
	d := message.Draft{CreationTime: noon, AbsoluteExpiry: noon.AddDate(1, 0, 0)}
	e := &Envelope{Message: d.Message()}
	if got := e.System(TimeToLive); got.Duration() != 365*24*time.Hour {
		t.Errorf("time to live by two times is %v, want 365 days", got)
	}
}

// TestEditedCopy applies actions to a real message and checks the copy.
func TestEditedCopy(t *testing.T) {
	for _, tt := range []struct{ action, holds string }{
		{"SET Priority = 'Low'", "Priority = 'Low' AND amount = 250 AND sys.Label = 'order.created'"},
		{"SET priority = 'Low'", "p('Priority') = 'Low'"},
		{"REMOVE PRIORITY", "Priority IS NULL AND NOT EXISTS(Priority)"},
		{"SET amount = amount + 1; SET [new one] = amount * 2", "amount = 251 AND [new one] = 502"},
		{"SET x = NULL", "EXISTS(x) AND x IS NULL"},
		{"SET sys.Label = 'new'; SET sys.To = 'b'; SET sys.SessionId = 's'", "sys.Label = 'new' AND sys.To = 'b' AND sys.SessionId = 's'"},
		{"REMOVE sys.Label; SET sys.CorrelationId = NULL", "sys.Label IS NULL AND sys.CorrelationId IS NULL AND sys.MessageId = 'order-4711'"},
		{"SET sys.ReplyTo='a'; SET sys.ReplyToSessionId='b'; SET sys.ContentType='c'; SET sys.MessageId = 'd'",
			"sys.ReplyTo='a' AND sys.ReplyToSessionId='b' AND sys.ContentType='c' AND sys.MessageId = 'd'"},
		{"SET sys.TimeToLive = @span", "sys.TimeToLive = @span"},
		{"SET sys.TimeToLive = @span; REMOVE sys.TimeToLive", "sys.TimeToLive > @span"},
		{"SET sys.PartitionKey = 'pk'; SET sys.ViaPartitionKey = 'v'", "sys.PartitionKey = 'pk' AND sys.ViaPartitionKey = 'v'"},
		{"SET took = @span; SET at = @when; SET flag = @flag; SET half = @rate", "took = @span AND at = @when AND flag AND half = 0.5"},
		{"SET sys.ScheduledEnqueueTimeUtc = @when; SET sys.ForcePersistence = TRUE", "sys.ScheduledEnqueueTimeUtc IS NULL AND sys.ForcePersistence = FALSE"},
	} {
		a, err := ParseAction(tt.action, sampleParams)
		if err != nil {
			t.Fatalf("ParseAction(%s): %v", tt.action, err)
		}
		before := orderMessage()
		changes, err := a.Apply(before)
		if err != nil {
			t.Fatalf("%s: %v", tt.action, err)
		}
		copied, err := message.Parse(before.Message.Edit(Edit(before.Message, changes)))
		if err != nil {
			t.Fatalf("%s: the copy is broken: %v", tt.action, err)
		}
		if x := parse(t, tt.holds).Explain(&Envelope{Message: copied}); !x.Matched {
			t.Errorf("after %s: %v", tt.action, x)
		}
	}
}

func TestEditKeepsWireTypes(t *testing.T) {
	a, err := ParseAction("SET amount = amount + 1", nil)
	if err != nil {
		t.Fatal(err)
	}
	m := orderMessage()
	changes, err := a.Apply(m)
	if err != nil {
		t.Fatal(err)
	}
	copied, err := message.Parse(m.Message.Edit(Edit(m.Message, changes)))
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := copied.Property("amount"); v.Kind() != codec.KindInt {
		t.Errorf("amount was an int and is now a %v", v.Kind())
	}
}

func TestEditLongTimeToLive(t *testing.T) {
	d := message.Draft{CreationTime: noon}
	m := d.Message()
	year := value.MakeTicks(365 * 86400 * 10_000_000)
	copied, err := message.Parse(m.Edit(Edit(m, []Change{{Name: Name{System: TimeToLive}, Value: year}})))
	if err != nil {
		t.Fatal(err)
	}
	if got := (&Envelope{Message: copied}).System(TimeToLive); *got != year {
		t.Errorf("time to live is %v, want %v", got, year)
	}
}

func TestForgottenMessageLeavesNothing(t *testing.T) {
	e := orderMessage()
	if e.User("tenant") == nil || e.System(Subject).Str() == "" {
		t.Fatal("the message was not read")
	}
	e.Forget()
	if e.Message != nil || e.read != nil || e.system[Subject] != (value.Value{}) {
		t.Errorf("kept %+v", e)
	}
	for _, p := range e.props[:cap(e.props)] {
		if p != (property{}) {
			t.Errorf("kept %+v", p)
		}
	}
	d := message.Draft{Subject: "other"}
	e.Message = d.Message()
	if v := e.User("tenant"); v != nil {
		t.Errorf("tenant is %v after a message without one", v)
	}
	if got := e.System(Subject).Str(); got != "other" {
		t.Errorf("label is %q, want other", got)
	}
}
