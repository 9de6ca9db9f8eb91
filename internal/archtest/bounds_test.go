// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strings"
	"testing"
)

// peerPkgs are the packages that the bytes of a peer reach, with those below them.
var peerPkgs = []string{
	"access", "admin", "amqp", "azure", "broker", "config", "entity", "eventhubs", "filter", "group", "message", "policy", "pools", "server", "servicebus",
}

// decoders are the functions that make values from a document, by the package that has
// them.
var decoders = map[string][]string{
	"encoding/json":                   {"NewDecoder", "Unmarshal"},
	"encoding/xml":                    {"NewDecoder", "Unmarshal"},
	"github.com/goccy/go-yaml":        {"NewDecoder", "Unmarshal", "UnmarshalWithOptions", "YAMLToJSON", "NodeToValue"},
	"github.com/goccy/go-yaml/parser": {"Parse", "ParseBytes", "ParseFile"},
	"io":                              {"ReadAll"},
}

// bounds says for each function that decodes a document, or that allocates or counts as far
// as a number says, what bounds it. The key is the package and the function.
var bounds = map[string]string{
	// Frames and what is read from them.
	"amqp/endpoint Conn.readLoop":           "maxRead; larger buffers are asked for and charged",
	"amqp/endpoint Link.SendSettled":        "the payloads that are there, and the output that the peer has not read",
	"amqp/endpoint Link.hold":               "Accept.MaxMessageSize and Config.MaxPartial; taken from the account first",
	"amqp/endpoint Machine.wrote":           "the deliveries that are being written",
	"amqp/endpoint unsettledMap.forget":     "the deliveries in the ring",
	"amqp/endpoint unsettledMap.freeSlot":   "twice the deliveries that are not settled; charged by Session.weigh",
	"amqp/endpoint unsettledMap.keepOld":    "the deliveries in old",
	"amqp/frame symbols":                    "MaxSymbols",
	"message CountBatch":                    "limits.Batch, and the bytes of the envelope",
	"message Message.Field":                 "the thirteen fields of the properties",
	"message Message.scan":                  "the seven sections",
	"message checkPairs":                    "the bytes of the map: each pair takes some",
	"message partitionKey.checkAnnotations": "the bytes of the map: each pair takes some",

	// Requests by AMQP and their replies.
	"azure Call.BeginReply":              "ReplyLimit, or what ReserveFor has charged",
	"eventhubs buffer":                   "what one read takes, which is charged before, or a batch that has come",
	"eventhubs encodeAssignment":         "limits.Partitions",
	"eventhubs groupCall.somePartitions": "limits.Partitions",
	"eventhubs links.beginGroupRead":     "limits.Partitions",
	"eventhubs links.readHub":            "limits.Partitions",
	"eventhubs ownerships":               "limits.Partitions",
	"group Groups.Info":                  "limits.Partitions",
	"group Groups.Pause":                 "limits.Partitions",
	"group group.part":                   "limits.Partitions, or maxPartitions in a record; what a request adds is charged before",
	"group assign":                       "the members of the group",
	"group rest":                         "the members of the group",
	"servicebus loader.encode":           "the size of one message that was read",

	// Documents by HTTP. Each body is read by problem.ReadBody, and charged as it comes; what
	// it becomes is charged before it is decoded, as package admin/cost finds out.
	"admin Outgoing.setBody":    "a string in a body that was read",
	"admin call.unmarshal":      "cost.JSON: limits.Elements, limits.Depth, and the memory of the request",
	"admin call.partitions":     "limits.Partitions",
	"admin cutRune":             "four bytes, which a rune has at most",
	"admin/atom parse":          "cost.XML: limits.XMLElements, limits.Attributes, and the memory of the request",
	"admin/cost fields.find":    "one name in a body that was read",
	"admin/problem ReadBody":    "the limit of its caller: limits.Body, limits.BatchByHTTP, the size of a message",
	"admin/property Parse":      "one value in a body that was read",
	"admin/rest call.readBatch": "limits.SentByHTTP messages; cost.JSON: limits.Elements, and the memory of the request",
	"admin/rest call.readOne":   "one header: limits.Header",
	"admin/rest parseHeader":    "one header: limits.Header",

	// Definitions, which are part of such documents or were stored.
	"access Rights.UnmarshalJSON":         "the definition that it is in: limits.Definition",
	"broker/catalog Catalog.route":        "limits.Subscriptions",
	"broker/catalog Definition.setPolicy": "limits.Policy",
	"broker/catalog decodeDefinition":     "one record of the log: limits.Definition",
	"entity DecodeJSON":                   "the definition that it reads: limits.Definition",
	"entity Deliveries.UnmarshalJSON":     "the definition that it is in: limits.Definition",
	"entity Value.UnmarshalJSON":          "the definition that it is in: limits.Definition",
	"entity each":                         "the definition that it reads: limits.Definition",
	"entity jsonDecoder.list":             "the definition that it reads, and the faults that are reported",
	"entity jsonDecoder.value":            "the definition that it reads: limits.Definition",
	"policy reader.parse":                 "limits.Policy",

	// What the operator gives: the configuration, the keys, the number of shards.
	"access Decode":                      "a file of the broker",
	"broker/jobs Runner.Run":             "the jobs that wait, each for one entity",
	"broker/jobs/redrive operation.move": "the messages of one step",
	"config blank":                       "a file of the operator",
	"config decoder.document":            "a file of the operator",
	"config parseEmulator":               "a file of the operator",
	"config plainJSON":                   "a file of the operator",
	"server openShards":                  "storage.shards",
	"server/credentials ReadFile":        "a file of the broker",
}

// Whatever a peer sends or names, something else bounds the memory that is made from it.
func TestEveryDecoderAndAllocationHasABound(t *testing.T) {
	files := slices.DeleteFunc(sources(t), func(s source) bool {
		return s.isTest() || !strings.HasPrefix(s.path, "internal/") || !isBelow(s.pkg(), peerPkgs)
	})
	consts := map[string]constants{}
	for _, s := range files {
		if consts[s.pkg()] == nil {
			consts[s.pkg()] = constants{}
		}
		consts[s.pkg()].add(t, s)
	}
	places := map[string][]string{}
	for _, s := range files {
		for where, what := range placesIn(t, s, consts[s.pkg()]) {
			places[where] = append(places[where], what...)
		}
	}
	for _, where := range slices.Sorted(maps.Keys(places)) {
		if bounds[where] == "" {
			t.Errorf("%s: %s; say in bounds what bounds it", where, strings.Join(places[where], ", "))
		}
	}
	for _, where := range slices.Sorted(maps.Keys(bounds)) {
		if places[where] == nil {
			t.Errorf("%s is in bounds, and decodes and allocates nothing", where)
		}
	}
}

// placesIn returns what the functions of a file decode and allocate, by package and
// function.
func placesIn(t *testing.T, s source, consts constants) map[string][]string {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, s.path, s.text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var decoding []*ast.SelectorExpr
	for path, names := range decoders {
		decoding = slices.AppendSeq(decoding, calls(file, path, names))
	}
	text := func(n ast.Node) string { return s.text[set.Position(n.Pos()).Offset:set.Position(n.End()).Offset] }
	places := map[string][]string{}
	for _, decl := range file.Decls {
		where := s.pkg() + " " + nameOf(decl)
		for node := range ast.Preorder(decl) {
			if n := timesOf(node); n != nil && !consts.isBounded(n) {
				places[where] = append(places[where], "a loop up to "+text(n))
			}
			call, ok := node.(*ast.CallExpr)
			if !ok {
				continue
			}
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok && slices.Contains(decoding, sel) {
				places[where] = append(places[where], fmt.Sprintf("%v.%s", sel.X, sel.Sel.Name))
			}
			if n := sizeOf(call); n != nil && !consts.isBounded(n) {
				places[where] = append(places[where], text(call))
			}
		}
	}
	return places
}

// nameOf returns the name of a function, with the type that it is a method of, or of the
// first variable that is declared.
func nameOf(decl ast.Decl) string {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return d.Name.Name
		}
		on := d.Recv.List[0].Type
		for {
			switch x := on.(type) {
			case *ast.StarExpr:
				on = x.X
				continue
			case *ast.IndexExpr:
				on = x.X
				continue
			}
			return fmt.Sprintf("%v.%s", on, d.Name.Name)
		}
	case *ast.GenDecl:
		if v, ok := d.Specs[0].(*ast.ValueSpec); ok {
			return v.Names[0].Name
		}
	}
	return ""
}

// sizeOf returns the number by which a call allocates, nil if it does not.
func sizeOf(call *ast.CallExpr) ast.Expr {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		if f.Name == "make" && len(call.Args) > 1 {
			return call.Args[len(call.Args)-1]
		}
	case *ast.SelectorExpr:
		if f.Sel.Name == "Grow" {
			return call.Args[len(call.Args)-1]
		}
	case *ast.IndexExpr: // slices.Grow[T]
		if sel, ok := f.X.(*ast.SelectorExpr); ok && sel.Sel.Name == "Grow" {
			return call.Args[len(call.Args)-1]
		}
	}
	return nil
}

// timesOf returns what bounds a loop that counts, nil if node is none. A range over a
// number is one if it has no variable, or converts the number: others cannot be told from
// those over lists without the types.
func timesOf(node ast.Node) ast.Expr {
	switch x := node.(type) {
	case *ast.RangeStmt:
		if call, ok := x.X.(*ast.CallExpr); ok {
			if f, ok := call.Fun.(*ast.Ident); ok && strings.Contains(f.Name, "int") && len(call.Args) == 1 {
				return call.Args[0]
			}
		}
		if _, isCall := x.X.(*ast.CallExpr); x.Key == nil && !isCall {
			return x.X
		}
	case *ast.ForStmt:
		if cond, ok := x.Cond.(*ast.BinaryExpr); ok && x.Post != nil {
			if _, counts := x.Post.(*ast.IncDecStmt); counts {
				return cond.Y
			}
		}
	}
	return nil
}

// constants are the names of the constants of a package.
type constants map[string]bool

func (c constants) add(t *testing.T, s source) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), s.path, s.text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for node := range ast.Preorder(file) {
		if d, ok := node.(*ast.GenDecl); ok && d.Tok == token.CONST {
			for _, spec := range d.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					c[name.Name] = true
				}
			}
		}
	}
}

// isBounded reports whether a number is a constant, or the length of something that is
// there already.
func (c constants) isBounded(n ast.Expr) bool {
	switch x := n.(type) {
	case *ast.BasicLit:
		return true
	case *ast.Ident:
		return c[x.Name]
	case *ast.ParenExpr:
		return c.isBounded(x.X)
	case *ast.BinaryExpr:
		return c.isBounded(x.X) && c.isBounded(x.Y)
	case *ast.SelectorExpr:
		on, ok := x.X.(*ast.Ident)
		return ok && on.Name == "limits"
	case *ast.CallExpr:
		f, ok := x.Fun.(*ast.Ident)
		if !ok {
			return false
		}
		switch f.Name {
		case "len", "cap":
			return true
		case "min":
			return slices.ContainsFunc(x.Args, c.isBounded)
		case "max":
			return !slices.ContainsFunc(x.Args, func(e ast.Expr) bool { return !c.isBounded(e) })
		}
	}
	return false
}
