// SPDX-License-Identifier: Apache-2.0

package access

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"
	"weak"

	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/limits"
)

var now = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func testRules() Rules {
	return Rules{
		{Name: RootRule, Rights: All, PrimaryKey: "first", SecondaryKey: "second"},
		{Name: "half", Rights: Send, PrimaryKey: "only"},
	}
}

// testAuthority has the rules above, and one of its own for an entity.
func testAuthority() *RuleAuthority {
	return NewRuleAuthority(testRules(), func(path string) (Entity, bool) {
		if path != "orders" && path != "orders/eu" {
			return Entity{}, false
		}
		return Entity{ID: uint64(len(path)), Rules: OfEntity(entity.AuthorizationRules{
			{KeyName: "reader", Rights: []entity.Right{entity.Listen}, PrimaryKey: path + " key"},
		})}, true
	})
}

// visible is a grant without what it is bound to.
func (g Grant) visible() Grant {
	g.entityID, g.key, g.anonymous = 0, "", false
	return g
}

func TestVerify(t *testing.T) {
	key := func(name, key string) Rule { return Rule{Name: name, PrimaryKey: key} }
	soon := now.Add(time.Hour)
	tests := []struct {
		name  string
		token string
		want  Grant
		err   error
	}{
		{"primary key", SignToken(key(RootRule, "first"), "amqp://localhost:5672/orders", soon),
			Grant{Rule: RootRule, Rights: All, Scope: "orders", Expires: soon}, nil},
		{"secondary key", SignToken(key(RootRule, "second"), "sb://host/orders/", soon),
			Grant{Rule: RootRule, Rights: All, Scope: "orders", Expires: soon}, nil},
		{"whole namespace", SignToken(key("half", "only"), "https://host.example/", soon),
			Grant{Rule: "half", Rights: Send, Expires: soon}, nil},
		{"bare host", SignToken(key("half", "only"), "host.example", soon),
			Grant{Rule: "half", Rights: Send, Expires: soon}, nil},
		{"bare host with a port", SignToken(key("half", "only"), "broker:5672", soon),
			Grant{Rule: "half", Rights: Send, Expires: soon}, nil},
		{"localhost", SignToken(key("half", "only"), "localhost", soon),
			Grant{Rule: "half", Rights: Send, Expires: soon}, nil},
		{"name of a queue, and no host", SignToken(key("half", "only"), "orders", soon),
			Grant{Rule: "half", Rights: Send, Scope: "orders", Expires: soon}, nil},
		{"name of a queue with a slash", SignToken(key("reader", "orders/eu key"), "orders/eu", soon),
			Grant{Rule: "reader", Rights: Listen, Scope: "orders/eu", Expires: soon, Entity: "orders/eu"}, nil},
		{"host and queue", SignToken(key("half", "only"), "host.example/orders", soon),
			Grant{Rule: "half", Rights: Send, Scope: "orders", Expires: soon}, nil},
		{"rule of an entity", SignToken(key("reader", "orders key"), "sb://host/orders/$management", soon),
			Grant{Rule: "reader", Rights: Listen, Scope: "orders/$management", Expires: soon, Entity: "orders"}, nil},
		{"rule of an entity that begins like another", SignToken(key("reader", "orders/eu key"), "sb://host/orders/eu", soon),
			Grant{Rule: "reader", Rights: Listen, Scope: "orders/eu", Expires: soon, Entity: "orders/eu"}, nil},
		{"rule of an entity for one below its name", SignToken(key("reader", "orders key"), "sb://host/orders/eu", soon), Grant{}, ErrSignature},
		{"rule of an entity for one that is not there", SignToken(key("reader", "orders key"), "sb://host/orders/us", soon), Grant{}, ErrSignature},
		{"rule of another entity", SignToken(key("reader", "orders key"), "sb://host/other", soon), Grant{}, ErrSignature},
		{"rule of an entity, name as prefix", SignToken(key("reader", "orders key"), "sb://host/orders2", soon), Grant{}, ErrSignature},
		{"rule of an entity for the namespace", SignToken(key("reader", "orders key"), "sb://host/", soon), Grant{}, ErrSignature},
		{"wrong key", SignToken(key(RootRule, "third"), "sb://host/orders", soon), Grant{}, ErrSignature},
		{"unset secondary key", SignToken(key("half", ""), "sb://host/orders", soon), Grant{}, ErrSignature},
		{"unknown rule", SignToken(key("nobody", "first"), "sb://host/orders", soon), Grant{}, ErrSignature},
		{"expired", SignToken(key(RootRule, "first"), "sb://host/orders", now), Grant{}, ErrExpired},
		{"expired and wrong", SignToken(key(RootRule, "third"), "sb://host/orders", now), Grant{}, ErrSignature},
		{"empty", "", Grant{}, ErrMalformed},
		{"no fields", "SharedAccessSignature ", Grant{}, ErrMalformed},
		{"no rule", "SharedAccessSignature sr=a&sig=YQ%3D%3D&se=1", Grant{}, ErrMalformed},
		{"expiry is no number", "SharedAccessSignature sr=a&sig=YQ%3D%3D&se=x&skn=half", Grant{}, ErrMalformed},
		{"signature is no base64", "SharedAccessSignature sr=a&sig=_&se=1&skn=half", Grant{}, ErrMalformed},
		{"too long", "SharedAccessSignature " + strings.Repeat("a", limits.Token), Grant{}, ErrMalformed},
	}
	k := testAuthority()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := k.Verify(tt.token, now)
			if !errors.Is(err, tt.err) {
				t.Fatalf("Verify(%q): error %v, want %v", tt.token, err, tt.err)
			}
			if got.visible() != tt.want {
				t.Errorf("Verify(%q) = %+v, want %+v", tt.token, got, tt.want)
			}
		})
	}
}

// The signature covers the resource as the client escaped it: one that escapes
// in upper case, or orders the fields differently, is right as well.
// A connection keeps its grants, and a token may come in a request that is much larger.
func TestGrantDoesNotKeepItsToken(t *testing.T) {
	verify := func(rule Rule, resource string) (Grant, weak.Pointer[byte]) {
		raw := []byte(SignToken(rule, resource, now.Add(time.Hour)))
		g, err := testAuthority().Verify(unsafe.String(&raw[0], len(raw)), now)
		if err != nil || g.Scope != "orders" {
			t.Fatalf("%+v, %v", g, err)
		}
		return g, weak.Make(&raw[0])
	}
	for _, rule := range []Rule{{Name: RootRule, PrimaryKey: "first"}, {Name: "reader", PrimaryKey: "orders key"}} {
		for _, resource := range []string{"orders", "sb://host/orders"} {
			g, token := verify(rule, resource)
			runtime.GC()
			if token.Value() != nil {
				t.Errorf("the grant of %s for %s keeps its token", rule.Name, resource)
			}
			runtime.KeepAlive(g)
		}
	}
}

func TestVerifyTakesTheResourceAsWritten(t *testing.T) {
	const sr = "sb%3A%2F%2FHost%2FOrders"
	se := "1772607967"
	mac := hmac.New(sha256.New, []byte("first"))
	mac.Write([]byte(sr + "\n" + se))
	sig := url.QueryEscape(base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	token := "SharedAccessSignature sig=" + sig + "&se=" + se + "&skn=" + RootRule + "&sr=" + sr
	got, err := testAuthority().Verify(token, now)
	if err != nil || got.Scope != "orders" {
		t.Fatalf("Verify(%q) = %+v, %v, want scope orders", token, got, err)
	}
}

func TestLogin(t *testing.T) {
	tests := []struct {
		rule, key string
		want      Grant
		err       error
	}{
		{RootRule, "first", Grant{Rule: RootRule, Rights: All}, nil},
		{strings.ToLower(RootRule), "second", Grant{Rule: RootRule, Rights: All}, nil},
		{"reader", "orders key", Grant{}, ErrSignature},
		{"half", "", Grant{}, ErrSignature},
		{RootRule, "SAS_KEY_VALUE", Grant{}, ErrSignature},
		{"", "", Grant{}, ErrSignature},
	}
	k := testAuthority()
	for _, tt := range tests {
		got, err := k.Login(tt.rule, tt.key)
		if got.visible() != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("Login(%q, %q) = %+v, %v, want %+v, %v", tt.rule, tt.key, got, err, tt.want, tt.err)
		}
	}
}

func TestCertificate(t *testing.T) {
	k := testAuthority()
	if g, err := k.Certificate("half"); err != nil || g.Rights != Send {
		t.Errorf("Certificate(half) = %+v, %v, want Send", g, err)
	}
	if _, err := k.Certificate("outsider"); !errors.Is(err, ErrRefused) {
		t.Errorf("Certificate(outsider): %v, want %v", err, ErrRefused)
	}
}

func TestDevelopment(t *testing.T) {
	token := SignToken(Development, "amqp://localhost/orders", now.Add(time.Hour))
	k := testAuthority()
	if _, err := k.Verify(token, now); !errors.Is(err, ErrSignature) {
		t.Errorf("strict: well-known key: %v, want %v", err, ErrSignature)
	}
	if _, err := k.VerifyJWT("a.b.c", now); !errors.Is(err, ErrRefused) {
		t.Errorf("strict: bearer token: %v, want %v", err, ErrRefused)
	}
	if _, err := k.Anonymous(); !errors.Is(err, ErrRefused) {
		t.Errorf("strict: anonymous: %v, want %v", err, ErrRefused)
	}

	d := ForDevelopment(k)
	if g, err := d.Verify(token, now); err != nil || !g.Allows(Manage, "orders", now) {
		t.Errorf("development: well-known key: %+v, %v", g, err)
	}
	if g, err := d.Verify(SignToken(testRules()[1], "sb://h/orders", now.Add(time.Hour)), now); err != nil || g.Allows(Manage, "orders", now) {
		t.Errorf("development: own rule: %+v, %v, want Send alone", g, err)
	}
	if _, err := d.Verify(SignToken(Development, "sb://h/", now.Add(-time.Second)), now); !errors.Is(err, ErrExpired) {
		t.Errorf("development: expired: %v, want %v", err, ErrExpired)
	}
	if _, err := d.VerifyJWT("a.b.c", now); err != nil {
		t.Errorf("development: bearer token: %v", err)
	}
	if _, err := d.Login(RootRule, Development.PrimaryKey); err != nil {
		t.Errorf("development: login: %v", err)
	}
}

func TestGrantAllows(t *testing.T) {
	g := Grant{Rights: Send, Scope: "a/b", Expires: now}
	tests := []struct {
		want Rights
		path string
		at   time.Time
		ok   bool
	}{
		{Send, "a/b", now.Add(-1), true},
		{Send, "a/b/c", now.Add(-1), true},
		{Send, "a/bc", now.Add(-1), false},
		{Send, "a", now.Add(-1), false},
		{Listen, "a/b", now.Add(-1), false},
		{Send, "a/b", now, false},
	}
	for _, tt := range tests {
		if got := g.Allows(tt.want, tt.path, tt.at); got != tt.ok {
			t.Errorf("Allows(%v, %q, %v) = %v, want %v", tt.want, tt.path, tt.at, got, tt.ok)
		}
	}
	if !Manage.Has(Send | Listen) {
		t.Error("Manage does not imply Send and Listen")
	}
}

// 11: a rule of an entity grants nothing on another entity whose name begins
// with its own, even if the token says so.
func TestGrantOfAnEntityEndsThere(t *testing.T) {
	g := Grant{Rights: All, Entity: "a"}
	for path, want := range map[string]bool{
		"a": true, "a/$management": true, "a/$deadletterqueue": true, "a/subscriptions/s": true,
		"a/messages/head": true, "a/subscriptions/s/rules/r": true,
		"a/b": false, "a/b/$management": false, "ab": false, "": false, "b": false,
	} {
		if got := g.Allows(Manage, path, now); got != want {
			t.Errorf("Allows(%q) = %v, want %v", path, got, want)
		}
	}
}

// 10: a grant is valid as long as its rule would grant it again.
func TestCheck(t *testing.T) {
	own := Rule{Name: "own", Rights: All, PrimaryKey: "p", SecondaryKey: "s"}
	e := Entity{ID: 7, Rules: Rules{own}}
	there := true
	k := NewRuleAuthority(testRules(), func(string) (Entity, bool) { return e, there })
	soon := now.Add(time.Hour)
	token, err := k.Verify(SignToken(own, "sb://h/q", soon), now)
	if err != nil {
		t.Fatal(err)
	}
	login, err := k.Login("half", "only")
	if err != nil {
		t.Fatal(err)
	}
	cert, err := k.Certificate("half")
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, g Grant, want Rights) {
		t.Helper()
		got, err := k.Check(g)
		if got.Rights != want || (err == nil) != (want != 0) || err != nil && !errors.Is(err, ErrRevoked) {
			t.Errorf("%s: Check = %v, %v, want %v", what, got.Rights, err, want)
		}
	}
	check("nothing changed", token, All)
	e.Rules = Rules{{Name: "own", Rights: All, PrimaryKey: "new", SecondaryKey: "p"}}
	check("key became the secondary one", token, All)
	e.Rules = Rules{{Name: "own", Rights: Listen, PrimaryKey: "p"}}
	check("fewer rights", token, Listen)
	e.Rules = Rules{{Name: "own", Rights: All, PrimaryKey: "new"}}
	check("key changed", token, 0)
	e.Rules = Rules{own}
	e.ID = 8
	check("entity created anew", token, 0)
	e.ID, there = 7, false
	check("entity deleted", token, 0)

	notified := 0
	k.OnChange(func() { notified++ })
	check("login", login, Send)
	check("certificate", cert, Send)
	k.Set(Rules{{Name: "half", Rights: Listen, PrimaryKey: "other"}})
	check("key of a login changed", login, 0)
	check("a certificate needs no key", cert, Listen)
	k.Set(Rules{testRules()[0]})
	check("rule of a certificate removed", cert, 0)
	if notified != 2 {
		t.Errorf("notified of %d changes, want 2", notified)
	}

	d := ForDevelopment(k)
	anonymous, _ := d.Anonymous()
	known, err := d.Login(RootRule, Development.PrimaryKey)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range []Grant{anonymous, known} {
		if got, err := d.Check(g); err != nil || got.Rights != All {
			t.Errorf("development: Check = %v, %v, want all", got.Rights, err)
		}
	}
	check("anonymous elsewhere", anonymous, 0)
}

func TestRulesSurviveEncoding(t *testing.T) {
	b, err := testRules().Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(b)
	if err != nil {
		t.Fatalf("Decode: %v", err)
	}
	if !slices.Equal(got, testRules()) {
		t.Errorf("after decoding: %+v, want %+v", got, testRules())
	}
	for _, bad := range []string{"", "{}", `{"version":2}`, `{"version":1,"rules":[{"name":"a"}]}`,
		`{"version":1,"rules":[{"name":"a","rights":["Fly"],"primaryKey":"k"}]}`} {
		if _, err := Decode([]byte(bad)); !errors.Is(err, errInvalid) {
			t.Errorf("Decode(%q): %v, want %v", bad, err, errInvalid)
		}
	}
}

func TestValidateNamesEveryFault(t *testing.T) {
	err := Rules{
		{Name: "a", Rights: Send, PrimaryKey: "k"},
		{Name: "A", Rights: Send, PrimaryKey: "k"},
		{Name: "b", PrimaryKey: "k"},
	}.Validate()
	for _, want := range []string{`"A" is there twice`, `rule "b" has no rights`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Validate() = %v, want it to say %q", err, want)
		}
	}
}

func TestWithReplacesByName(t *testing.T) {
	got := testRules().With(Rules{{Name: "HALF", Rights: Listen, PrimaryKey: "new"}})
	if len(got) != 2 || got[1].PrimaryKey != "new" || got[0].Name != RootRule {
		t.Errorf("With = %+v", got)
	}
}

func TestNewRuleHasItsOwnKeys(t *testing.T) {
	a, b := NewRule("a", Send), NewRule("a", Send)
	if len(a.PrimaryKey) != 44 || a.PrimaryKey == a.SecondaryKey || a.PrimaryKey == b.PrimaryKey {
		t.Errorf("keys repeat or are short: %q %q %q", a.PrimaryKey, a.SecondaryKey, b.PrimaryKey)
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add(SignToken(Development, "sb://host/q", now))
	f.Add("SharedAccessSignature sr=%zz&sig=&se=&skn=")
	f.Fuzz(func(t *testing.T, text string) {
		tok, err := parseToken(text)
		if err == nil && (tok.KeyName == "" || tok.Resource == "") {
			t.Fatalf("parseToken(%q) = %+v without an error", text, tok)
		}
	})
}

// A key of an entity counts for the entity, and for no rule of the namespace that has its name.
func TestAccount(t *testing.T) {
	of, other := Grant{Rule: "worker", Entity: "orders"}, Grant{Rule: "boss", Entity: "orders"}
	if of.Account() != other.Account() {
		t.Errorf("%q and %q, want the same for two keys of an entity", of.Account(), other.Account())
	}
	if rule := (Grant{Rule: "orders"}); rule.Account() == of.Account() {
		t.Errorf("a rule of the namespace and an entity are both counted as %q", rule.Account())
	}
}
