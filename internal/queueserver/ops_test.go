// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// operations are all requests, each with its reply.
var operations = []struct{ request, reply any }{
	{Peek{}, Peeked{}},
	{NextLevel{}, NextLevelReply{}},
	{LastNumber{}, queue.SeqNo(0)},
	{Renew{}, []time.Time{}},
	{Save{}, time.Time{}},
	{CheckSessionLocks{}, struct{}{}},
	{CancelScheduled{}, struct{}{}},
	{LockDeferred{}, []Delivery{}},
	{LockMessages{}, []queue.Token{}},
	{Purge{}, 0},
	{Remove{}, []error{}},
	{RenewSession{}, time.Time{}},
	{findSessionState{}, queue.Ref{}},
	{SetSessionState{}, struct{}{}},
	{ListSessions{}, []string{}},
	{Define{}, ID(0)},
	{Configure{}, struct{}{}},
	{Drop{}, struct{}{}},
	{DropIdle{}, time.Time{}},
	{Inspect{}, Inspected{}},
	{Explain{}, Explained{}},
	{Reclassify{}, ReclassifyReply{}},
	{EndReclassify{}, ReclassifyEnd{}},
	{AwaitOrder{}, struct{}{}},
	{Measure{}, []Measured{}},
	{Report{}, []Reported{}},
	{Send{}, []queue.SeqNo{}},
	{Settle{}, []error{}},
}

// Every request and every reply can be written to bytes and read again: it has no
// functions and no pointers into the process.
func TestOperationsAreValues(t *testing.T) {
	for _, o := range operations {
		for _, v := range []any{o.request, o.reply} {
			typ := reflect.TypeOf(v)
			t.Run(fmt.Sprintf("%T/%v", o.request, typ), func(t *testing.T) {
				defer func() {
					if err := recover(); err != nil {
						t.Fatalf("%v is no value: %v", typ, err)
					}
				}()
				var c valueCodec
				want := reflect.New(typ).Elem()
				c.fill(want, 3)
				c.write(want)
				got := reflect.New(typ).Elem()
				c.read(got)
				if c.Len() > 0 || !reflect.DeepEqual(asBytes(got), asBytes(want)) {
					t.Errorf("got %s\nwant %s", asBytes(got), asBytes(want))
				}
			})
		}
	}
}

// asBytes compares errors by what they say and messages by their bytes.
func asBytes(v reflect.Value) string {
	var c valueCodec
	c.write(v)
	return c.String()
}

// The table above has every operation.
func TestOperationsAreComplete(t *testing.T) {
	known := make(map[string]bool)
	for _, o := range operations {
		known[reflect.TypeOf(o.request).Name()] = true
	}
	pkgs, err := parser.ParseDir(token.NewFileSet(), ".", func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }, 0)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	found := 0
	for _, pkg := range pkgs {
		ast.Inspect(pkg, func(n ast.Node) bool {
			if fn, ok := n.(*ast.FuncDecl); ok && fn.Recv != nil && fn.Name.Name == "begin" {
				if id, ok := fn.Recv.List[0].Type.(*ast.Ident); ok {
					found++
					if !known[id.Name] {
						t.Errorf("%s is not in the table", id.Name)
					}
				}
			}
			return true
		})
	}
	if found == 0 {
		t.Error("no operation was found")
	}
}

// Every error with a code keeps its identity and its text on the way.
func TestErrorsKeepTheirIdentity(t *testing.T) {
	for _, x := range errorCodes {
		var c valueCodec
		want := fmt.Errorf("%w: details", x.err)
		c.write(reflect.ValueOf(&want).Elem())
		var got error
		c.read(reflect.ValueOf(&got).Elem())
		if !errors.Is(got, x.err) || got.Error() != want.Error() || codeOf(got) != x.code {
			t.Errorf("%s: got %v with code %q, want %v", x.code, got, codeOf(got), want)
		}
	}
	if got := codeOf(fmt.Errorf("refused: %w", &ThrottledError{Class: "a"})); got != "throttled" {
		t.Errorf("a throttled sender is told code %q", got)
	}
}

// valueCodec writes values to bytes and reads them. What is no value makes it panic.
type valueCodec struct {
	bytes.Buffer
	n int // values filled in so far
}

// remote is an error as it comes from another process.
type remote struct {
	text string
	is   error
}

func (e *remote) Error() string { return e.text }
func (e *remote) Unwrap() error { return e.is }

var (
	typeTime     = reflect.TypeFor[time.Time]()
	typeMessage  = reflect.TypeFor[*message.Message]()
	typeError    = reflect.TypeFor[error]()
	typeValue    = reflect.TypeFor[codec.Value]()
	typeDelivery = reflect.TypeFor[Delivery]()
	typeSend     = reflect.TypeFor[Send]()
	typeSettle   = reflect.TypeFor[Settle]()
)

// fields calls fn for each field that crosses. A Delivery takes along its message and
// what became of it; the way back to the shard is for the receiving side to fill in. The
// callback of a Send or Settle, and what follows it, stay with the caller.
func fields(v reflect.Value, fn func(reflect.Value)) {
	switch v.Type() {
	case typeDelivery:
		d := v.Addr().Interface().(*Delivery)
		for _, f := range []any{&d.Delivery, &d.msg, &d.removed, &d.damaged} {
			fn(reflect.ValueOf(f).Elem())
		}
		return
	case typeSend, typeSettle:
		for i := range v.NumField() {
			if v.Type().Field(i).Name == "Done" {
				return
			}
			fn(v.Field(i))
		}
	}
	for i := range v.NumField() {
		if f := v.Type().Field(i); !f.IsExported() {
			panic(fmt.Sprintf("%v has the field %s", v.Type(), f.Name))
		}
		fn(v.Field(i))
	}
}

// fill sets everything in v to something that is not zero.
func (c *valueCodec) fill(v reflect.Value, depth int) {
	c.n++
	switch v.Type() {
	case typeTime:
		v.Set(reflect.ValueOf(time.Unix(int64(c.n), 5).UTC()))
		return
	case typeMessage:
		d := message.Draft{Body: fmt.Append(nil, c.n)}
		v.Set(reflect.ValueOf(d.Message()))
		return
	case typeValue:
		v.Set(reflect.ValueOf(codec.Int(int32(c.n))))
		return
	case typeError:
		v.Set(reflect.ValueOf(fmt.Errorf("%w: %d", queue.ErrLocked, c.n)))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(c.n % 100))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(c.n % 100))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(c.n) + 0.5)
	case reflect.String:
		v.SetString(fmt.Sprint("s", c.n))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		c.fill(v.Elem(), depth)
	case reflect.Slice:
		if depth > 0 {
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			c.fill(v.Index(0), depth-1)
			c.fill(v.Index(1), depth-1)
		}
	case reflect.Array:
		for i := range v.Len() {
			c.fill(v.Index(i), depth)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		c.fill(key, depth)
		c.fill(value, depth)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		fields(v, func(f reflect.Value) { c.fill(f, depth) })
	default:
		panic(fmt.Sprintf("a %v", v.Type()))
	}
}

func (c *valueCodec) number(n uint64) { c.Write(binary.AppendUvarint(nil, n)) }

func (c *valueCodec) bytes(b []byte) {
	c.number(uint64(len(b)))
	c.Write(b)
}

func (c *valueCodec) readNumber() uint64 {
	n, err := binary.ReadUvarint(c)
	if err != nil {
		panic(err)
	}
	return n
}

func (c *valueCodec) readBytes() []byte { return bytes.Clone(c.Next(int(c.readNumber()))) }

func (c *valueCodec) write(v reflect.Value) {
	switch v.Type() {
	case typeTime:
		b, err := v.Interface().(time.Time).MarshalBinary()
		if err != nil {
			panic(err)
		}
		c.bytes(b)
		return
	case typeMessage:
		c.bytes(v.Interface().(*message.Message).Bytes())
		return
	case typeValue:
		c.bytes(codec.AppendValue(nil, v.Interface().(codec.Value)))
		return
	case typeError:
		err, _ := v.Interface().(error)
		if c.number(flag(err == nil)); err != nil {
			c.bytes([]byte(codeOf(err)))
			c.bytes([]byte(err.Error()))
		}
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		c.number(flag(v.Bool()))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		c.number(uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		c.number(v.Uint())
	case reflect.Float32, reflect.Float64:
		c.bytes(fmt.Append(nil, v.Float()))
	case reflect.String:
		c.bytes([]byte(v.String()))
	case reflect.Pointer:
		if c.number(flag(v.IsNil())); !v.IsNil() {
			c.write(v.Elem())
		}
	case reflect.Slice:
		if c.number(flag(v.IsNil())); !v.IsNil() {
			c.number(uint64(v.Len()))
			for i := range v.Len() {
				c.write(v.Index(i))
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			c.write(v.Index(i))
		}
	case reflect.Map:
		c.number(uint64(v.Len()))
		for key, value := range v.Seq2() {
			c.write(key)
			c.write(value)
		}
	case reflect.Struct:
		if !v.CanAddr() { // of a map
			p := reflect.New(v.Type()).Elem()
			p.Set(v)
			v = p
		}
		fields(v, c.write)
	default:
		panic(fmt.Sprintf("a %v", v.Type()))
	}
}

func (c *valueCodec) read(v reflect.Value) {
	switch v.Type() {
	case typeTime:
		var at time.Time
		if err := at.UnmarshalBinary(c.readBytes()); err != nil {
			panic(err)
		}
		v.Set(reflect.ValueOf(at))
		return
	case typeMessage:
		m, err := message.ParseStored(c.readBytes())
		if err != nil {
			panic(err)
		}
		v.Set(reflect.ValueOf(m))
		return
	case typeValue:
		x, err := codec.ParseValue(c.readBytes())
		if err != nil {
			panic(err)
		}
		v.Set(reflect.ValueOf(x))
		return
	case typeError:
		if c.readNumber() == 0 {
			code := string(c.readBytes())
			e := &remote{text: string(c.readBytes())}
			for _, x := range errorCodes {
				if x.code == code {
					e.is = x.err
				}
			}
			v.Set(reflect.ValueOf(e))
		}
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(c.readNumber() == 1)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(c.readNumber()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(c.readNumber())
	case reflect.Float32, reflect.Float64:
		var f float64
		if _, err := fmt.Sscan(string(c.readBytes()), &f); err != nil {
			panic(err)
		}
		v.SetFloat(f)
	case reflect.String:
		v.SetString(string(c.readBytes()))
	case reflect.Pointer:
		if c.readNumber() == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			c.read(v.Elem())
		}
	case reflect.Slice:
		if c.readNumber() == 0 {
			n := int(c.readNumber())
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				c.read(v.Index(i))
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			c.read(v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range c.readNumber() {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			c.read(key)
			c.read(value)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		fields(v, c.read)
	default:
		panic(fmt.Sprintf("a %v", v.Type()))
	}
}

func flag(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
