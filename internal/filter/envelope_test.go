// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
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
	for name, want := range map[string]Value{
		"bool": MakeBool(true), "ubyte": MakeInt(200).WithWidth(Uint8), "ushort": MakeInt(60000).WithWidth(Uint16),
		"uint": MakeInt(4e9).WithWidth(Uint32), "ulong": MakeUint(math.MaxUint64).WithWidth(Uint64), "byte": MakeInt(-5).WithWidth(Int8),
		"short": MakeInt(-300).WithWidth(Int16), "int": MakeInt(-70000).WithWidth(Int32), "long": MakeInt(-5e12),
		"float": MakeDouble(1.5).WithWidth(Float32), "double": MakeDouble(0.1), "char": MakeString("x"), "wide": MakeString("ß"),
		"time": MakeTime(noon), "uuid": MakeUUID([16]byte{1}), "binary": MakeBinary("\x01\x02"), "string": MakeString("s"),
		"symbol": MakeString("sy"), "null": MakeNull(), "span": MakeDuration(90 * time.Second), "offset": MakeTime(time.Unix(1, 0)),
		"uri": MakeString("http://x/"), "odd": MakeOpaque(),
		"Case": MakeInt(1).WithWidth(Int32), "case": MakeInt(2).WithWidth(Int32), "CASE": MakeInt(1).WithWidth(Int32),
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
		v := FromWire(p.Value)
		if p.Name == "odd" || p.Name == "wide" || p.Name == "char" {
			continue
		}
		if back := FromWire(ToWire(v)); back != v {
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
	want := map[SystemName]Value{
		MessageID: MakeString("m-1"), CorrelationID: MakeString("ab000000-0000-0000-0000-000000000000"), To: MakeString("to"),
		Subject: MakeString("label"), ReplyTo: MakeString("reply"), ContentType: MakeString("text/plain"), SessionID: MakeString("s"),
		ReplyToSessionID: MakeString("rs"), PartitionKey: MakeString("pk"), ViaPartitionKey: MakeString("via"),
		ScheduledEnqueueTimeUTC: MakeTime(noon), TimeToLive: MakeDuration(time.Minute), ForcePersistence: MakeBool(true),
		SequenceNumber: MakeInt(7), EnqueuedSequenceNumber: MakeInt(3), EnqueuedTimeUTC: MakeTime(noon),
		LockedUntilUTC: MakeTime(noon.Add(time.Minute)), LockToken: MakeUUID([16]byte{9}), DeliveryCount: MakeInt(2), State: MakeInt(1),
		DeadLetterSource: MakeString("dlq"), ExpiresAtUTC: MakeTime(noon.Add(time.Minute)), Size: MakeInt(int64(e.Message.Size())),
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
	year := MakeTicks(365 * 86400 * 10_000_000)
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
	if e.Message != nil || e.read != nil || e.system[Subject] != (Value{}) {
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
