// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/sas"
)

// Errors of a request's credentials.
var (
	// ErrMissing means that the request proves nothing, and had to.
	ErrMissing = errors.New("caller: no credentials")
	// ErrRights means that the caller is known and may not do this.
	ErrRights = errors.New("caller: not allowed")
)

// rightsError says which right is missing where. It unwraps to ErrRights.
type rightsError struct {
	Want access.Rights
	Path string
}

func (e *rightsError) Error() string {
	return fmt.Sprintf("caller: the right %s is needed on %q", e.Want, "/"+e.Path)
}

func (e *rightsError) Unwrap() error { return ErrRights }

// Authorities returns the authority for a request, which depends on its origin.
type Authorities func(*http.Request) access.Authority

// Header is the header of the credentials. The administration clients send two
// more of them, for the entities that are forwarded to.
const (
	Header           = "Authorization"
	HeaderForward    = "ServiceBusSupplementaryAuthorization"
	HeaderForwardDLQ = "ServiceBusDlqSupplementaryAuthorization"
)

// observerKey is the context key of the function passed to Observe.
type observerKey struct{}

// Observe returns the context of a request that calls identified when its
// sender is identified. If it returns an error, Identify returns that error.
func Observe(ctx context.Context, identified func(access.Grant) error) context.Context {
	return context.WithValue(ctx, observerKey{}, identified)
}

// Identify returns what the sender of r may do.
func (as Authorities) Identify(r *http.Request) (access.Grant, error) {
	g, err := as.identify(r)
	if err != nil {
		return access.Grant{}, err
	}
	if identified, ok := r.Context().Value(observerKey{}).(func(access.Grant) error); ok {
		if err := identified(g); err != nil {
			return access.Grant{}, err
		}
	}
	return g, nil
}

func (as Authorities) identify(r *http.Request) (access.Grant, error) {
	a := as(r)
	if text := r.Header.Get(Header); text != "" {
		return verify(a, text)
	}
	g, err := a.Anonymous()
	if err != nil {
		return access.Grant{}, ErrMissing
	}
	return g, nil
}

// Supplement returns what the credentials in another header allow, nothing if it
// is absent.
func (as Authorities) Supplement(r *http.Request, header string) (access.Grant, error) {
	text := r.Header.Get(header)
	if text == "" {
		return access.Grant{}, nil
	}
	return verify(as(r), text)
}

// verify checks credentials in any of the spellings that clients use. The
// administration client for Go sends a bearer token without saying that it is one.
func verify(a access.Authority, text string) (access.Grant, error) {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	rest = strings.TrimSpace(rest)
	now := time.Now()
	switch {
	case strings.EqualFold(scheme, sas.Scheme):
		return a.Verify(sas.Scheme+" "+rest, now)
	case strings.EqualFold(scheme, "Basic"):
		r := http.Request{Header: http.Header{Header: {text}}}
		rule, key, ok := r.BasicAuth()
		if !ok {
			return access.Grant{}, access.ErrMalformed
		}
		return a.Login(rule, key)
	case strings.EqualFold(scheme, "Bearer") && strings.HasPrefix(rest, sas.Scheme+" "):
		return a.Verify(rest, now)
	case strings.EqualFold(scheme, "Bearer"):
		return a.VerifyJWT(rest, now)
	case rest == "" && strings.Count(scheme, ".") == 2:
		return a.VerifyJWT(scheme, now)
	}
	return access.Grant{}, access.ErrMalformed
}

// Path returns an address in the form in which rights are compared. The broker
// reads the same from the same text, so that no spelling bypasses a check. For
// an address that the broker cannot read, no rule applies.
func Path(addr string) string {
	if addr == "" {
		return "" // the namespace
	}
	p, err := entity.ParsePath(addr)
	if err != nil {
		return invalidPath
	}
	return entity.Key(p.String())
}

// invalidPath is the path of an invalid address.
const invalidPath = "*"

// Recheck returns the grant of r as it is now, or an error if it no longer
// includes want on path. A request is checked again after it has waited: for a
// message, for its own body, or for its client to read.
func (as Authorities) Recheck(r *http.Request, g access.Grant, want access.Rights, path string) (access.Grant, error) {
	g, err := as(r).Check(g)
	if err != nil {
		return access.Grant{}, err
	}
	if g.Expired(time.Now()) {
		return access.Grant{}, &access.ExpiredError{At: g.Expires}
	}
	return g, Require(g, want, path)
}

// Require returns an error if g does not include want on path, as Path writes
// it.
func Require(g access.Grant, want access.Rights, path string) error {
	if !g.Allows(want, path, time.Now()) {
		return &rightsError{Want: want, Path: path}
	}
	return nil
}
