// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/limits"
)

// message is a struct with every kind of field that requests have.
type message struct {
	ID         string                     `json:"id"`
	Session    *string                    `json:"session"`
	Properties map[string]json.RawMessage `json:"properties"`
	Body       json.RawMessage            `json:"body"`
	Number     float64                    `json:"number"`
	Parts      []*message                 `json:"parts"`
	Any        any                        `json:"any"`
	Duration   entity.Duration            `json:"duration"`
}

// many returns a text as often as it fits into a document of a quarter of a mebibyte, or as
// often as a list may have elements.
func many(before, each, after string) string {
	n := min((256<<10-len(before)-len(after))/(len(each)+1), limits.Elements)
	return before + strings.TrimSuffix(strings.Repeat(each+",", n), ",") + after
}

// numbered returns an object with so many members that no two are the same.
func numbered(n int, value string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(`,"`)
		for ; i > 0; i /= 64 {
			b.WriteByte("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"[i%64])
		}
		b.WriteString(`":` + value)
	}
	return "{" + strings.TrimPrefix(b.String(), ",") + "}"
}

// live returns how much memory a value takes that decode makes.
func live(t *testing.T, decode func() (any, error)) int64 {
	t.Helper()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	v, err := decode()
	if err != nil {
		t.Log(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(v)
	return int64(after.HeapAlloc) - int64(before.HeapAlloc)
}

// However a text is made, what it becomes takes no more memory than its cost.
func TestCostCoversWhatIsDecoded(t *testing.T) {
	messages, tree := reflect.TypeFor[[]message](), reflect.TypeFor[any]()
	for name, c := range map[string]struct {
		text string
		into reflect.Type
	}{
		"empty messages":      {many("[", "{}", "]"), messages},
		"nulls":               {many("[", "null", "]"), messages},
		"pointers":            {many(`[{"parts":[`, "{}", "]}]"), messages},
		"pointers to nothing": {many(`[{"parts":[`, "null", "]}]"), messages},
		"nested parts":        {many("[", `{"parts":[{"parts":[{}]}]}`, "]"), messages},
		"members":             {`[{"properties":` + numbered(limits.Elements, "1") + `}]`, messages},
		"small maps":          {many("[", `{"properties":{"a":1}}`, "]"), messages},
		"an escaped name":     {many("[", `{"p\u0061rts":[{},{}]}`, "]"), messages},
		"a name of any case":  {many("[", `{"PARTſ":[{},{}]}`, "]"), messages},
		"the same name often": {many(`[{`, `"session":"a"`, "}]"), messages},
		"not UTF-8":           {`[{"id":"` + strings.Repeat("\xff", 200<<10) + `"}]`, messages},
		"escapes":             {`[{"id":"` + strings.Repeat(`\n`, 100<<10) + `"}]`, messages},
		"long numbers":        {many("[", `{"any":[`+strings.Repeat("9", 300)+`]}`, "]"), messages},
		"texts of their own":  {many("[", `{"duration":"PT1S"}`, "]"), messages},
		"a tree of nulls":     {many("[", "null", "]"), tree},
		"a tree of numbers":   {many("[", "1", "]"), tree},
		"a tree of lists":     {many("[", "[[]]", "]"), tree},
		"a tree of objects":   {many("[", `{"":{}}`, "]"), tree},
		"a tree of members":   {numbered(limits.Elements, `""`), tree},
		"rules":               {many(`{"rules":[`, `{}`, "]}"), reflect.TypeFor[entity.Subscription]()},
		"correlations":        {many(`{"rules":[`, `{"filter":{"correlation":{"properties":{"":1}}}}`, "]}"), reflect.TypeFor[entity.Subscription]()},
		"parameters":          {`{"rules":[{"action":{"parameters":` + numbered(limits.Elements, "{}") + "}}]}", reflect.TypeFor[entity.Subscription]()},
		"groups":              {many(`{"consumerGroups":[`, `{}`, "]}"), reflect.TypeFor[entity.Hub]()},
		"keys":                {many(`{"authorizationRules":[`, `{"rights":["Send"]}`, "]}"), reflect.TypeFor[entity.Queue]()},
		"a patch":             {numbered(limits.Elements, "0"), reflect.TypeFor[map[string]json.RawMessage]()},
	} {
		t.Run(name, func(t *testing.T) {
			cost, err := JSON([]byte(c.text), c.into)
			if err != nil {
				t.Fatal(err)
			}
			got := live(t, func() (any, error) {
				v := reflect.New(c.into)
				err := json.Unmarshal([]byte(c.text), v.Interface())
				return v.Interface(), err
			})
			t.Logf("%d KiB become %d KiB; the cost is %d KiB", len(c.text)>>10, got>>10, cost>>10)
			if got > cost {
				t.Errorf("%d bytes become %d, the cost is %d", len(c.text), got, cost)
			}
		})
	}
}

// What is kept as it is costs what it is long, however many elements it has.
func TestRawJSONCostsItsLength(t *testing.T) {
	text := `[{"body":[` + strings.Repeat("[[]],", 100_000) + `0]}]`
	cost, err := JSON([]byte(text), reflect.TypeFor[[]message]())
	if err != nil || cost > 5*int64(len(text)) {
		t.Errorf("%d bytes cost %d, %v", len(text), cost, err)
	}
}

func TestListsAndObjectsHaveALimit(t *testing.T) {
	for name, text := range map[string]string{
		"a list":            "[" + strings.Repeat("{},", limits.Elements) + "{}]",
		"a list in another": `[{"parts":[` + strings.Repeat("{},", limits.Elements) + "{}]}]",
		"a map":             `[{"properties":` + numbered(limits.Elements+1, "1") + `}]`,
		"a tree":            `[{"any":[` + strings.Repeat("0,", limits.Elements) + "0]}]",
		"members of one":    `[{` + strings.Repeat(`"x":0,`, limits.Elements) + `"x":0}]`,
		"depth":             `[{"any":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}]`,
		"depth of a struct": `[{"parts":` + strings.Repeat(`[{"parts":`, 100) + "[]" + strings.Repeat("}]", 100) + `}]`,
	} {
		if _, err := JSON([]byte(text), reflect.TypeFor[[]message]()); !errors.Is(err, limits.ErrExceeded) {
			t.Errorf("%s: %v, want a limit", name, err)
		}
	}
}

func TestElements(t *testing.T) {
	for text, want := range map[string]int{
		``: 0, `{}`: 0, `[]`: 0, ` [ 1 , [2,3] , {"a":[]} , "[,]" , null ] `: 5, `["\",",""]`: 2, `[1,2`: 2,
	} {
		if got := Elements([]byte(text)); got != want {
			t.Errorf("%s: %d elements, want %d", text, got, want)
		}
	}
}

func FuzzJSON(f *testing.F) {
	for _, seed := range []string{`[{"id":"a","parts":[{},null]}]`, `{"a":[1,2,"\"]"],"b":{}}`, `[1,-2.5e7,true]`, "[\n{} ,\t{}]", `"\u00e4"`, `[[`, `{"a"`, `{1:2}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, into := range []reflect.Type{reflect.TypeFor[[]message](), reflect.TypeFor[any](), reflect.TypeFor[message]()} {
			if _, err := JSON(text, into); err != nil && !errors.Is(err, limits.ErrExceeded) {
				t.Error(err)
			}
		}
		if !json.Valid(text) {
			return
		}
		s := scanner{text: text}
		s.space()
		if s.skip(); s.space() != 0 {
			t.Errorf("%q: the value ends at %d", text, s.at)
		}
		s = scanner{text: text}
		s.space()
		s.value(reflect.TypeFor[any](), 1)
		if s.space(); s.err == nil && s.at < len(text) {
			t.Errorf("%q: the tree ends at %d", text, s.at)
		}
		var list []json.RawMessage
		if json.Unmarshal(text, &list) == nil && Elements(text) != len(list) {
			t.Errorf("%q has %d elements, want %d", text, Elements(text), len(list))
		}
	})
}

// XML has no cheaper text than one that is all attributes, and that is refused.
func TestXMLHasLimits(t *testing.T) {
	for name, text := range map[string]string{
		"attributes": "<a " + strings.Repeat(`b="" `, limits.Attributes+1) + "/>",
		"namespaces": "<a " + strings.Repeat(`xmlns:b='>' `, limits.Attributes+1) + "/>",
		"elements":   "<a>" + strings.Repeat("<b/>", limits.XMLElements) + "</a>",
		"behind":     `<!-- " --><?x '?><a><![CDATA[<"]]><b ` + strings.Repeat(`c="1"`, 100) + "/></a>",
	} {
		if _, err := XML([]byte(text)); !errors.Is(err, limits.ErrExceeded) {
			t.Errorf("%s: %v, want a limit", name, err)
		}
	}
	cost, err := XML([]byte(`<entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml"/></entry>`))
	if err != nil || cost < 2*elementCost+2*attributeCost {
		t.Errorf("the cost is %d, %v", cost, err)
	}
}

// The decoder finds no elements and attributes that were not counted.
func FuzzXML(f *testing.F) {
	for _, seed := range []string{`<a b="c" d='>'><e/></a>`, `<!--<a b="">--><a/>`, `<?x y="?><a b="1"/>`, `<a><![CDATA[<b c="]]></a>`, `<a b="'" c='"'/>`, `<!DOCTYPE a [<!ENTITY b "c">]><a/>`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		cost, err := XML(text)
		if err != nil {
			return
		}
		want := textCopies * int64(len(text))
		for d := xml.NewDecoder(strings.NewReader(string(text))); ; {
			token, err := d.Token()
			if err != nil {
				break
			}
			if _, ok := token.(xml.Directive); ok {
				break
			}
			if start, ok := token.(xml.StartElement); ok {
				want += elementCost + attributeCost*int64(len(start.Attr))
			}
		}
		if cost < want {
			t.Errorf("%q costs %d, and the decoder makes %d", text, cost, want)
		}
	})
}
