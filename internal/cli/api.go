// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/load"
	"github.com/triagemq/triagemq/internal/sas"
)

// API is the broker's JSON API, on the host and port at which it speaks AMQP.
type API struct {
	base string
	rule access.Rule // whose key signs requests; without a name none are signed
	host string
	http http.Client
}

// Tokens live long enough for one request, and requests for a while.
const (
	tokenLife  = 5 * time.Minute
	apiTimeout = time.Minute
	pageSize   = 1000 // the most that the API lists at a time
)

// API returns the management side of the broker.
func (t *Target) API() (*API, error) {
	at, err := load.ParseTarget(t.Address())
	if err != nil {
		return nil, Usage(fmt.Errorf("--connection-string: %s", strings.TrimPrefix(err.Error(), "load: ")))
	}
	scheme := "http"
	if at.TLS {
		scheme = "https"
	}
	return &API{
		base: scheme + "://" + at.Address + "/api/v1",
		host: at.Host,
		rule: access.Rule{Name: at.User, PrimaryKey: at.Password},
		http: http.Client{
			Timeout: apiTimeout,
			// What is meant for one path goes to no other.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// apiError is what the broker said.
type apiError struct {
	Status  int    `json:"-"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Details []struct {
		Field   string `json:"field"`
		Problem string `json:"problem"`
	} `json:"details"`
}

func (e *apiError) Error() string {
	var b strings.Builder
	b.WriteString(strings.TrimSpace(e.Message))
	for _, d := range e.Details {
		if d.Field != "" && !strings.Contains(e.Message, d.Problem) {
			fmt.Fprintf(&b, "\n  %s: %s", d.Field, d.Problem)
		}
	}
	if text, ok := apiAdvice[e.Code]; ok {
		b.WriteString("\n  " + text)
	}
	return b.String()
}

// apiAdvice is what to do about what the broker said.
var apiAdvice = map[string]string{
	"not_found":      "`triagemq queue list`, `triagemq topic list` and `triagemq hub list` show what there is",
	"pool_not_found": "`triagemq pool list` shows the pools that run; a pool is known when one of its processes has announced itself",
	"exists":         "change it with update instead of create",
	"unauthorized":   "check the key in --connection-string or $" + ConnectionVariable,
	"forbidden":      "the key lacks a right: managing needs Manage, reading Listen",
}

// NotFound reports whether the broker said that there is no such thing.
func NotFound(err error) bool {
	e, ok := errors.AsType[*apiError](err)
	return ok && e.Status == http.StatusNotFound
}

// Path joins the segments of a path; names may have slashes.
func Path(segments ...string) string {
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	return "/" + strings.Join(segments, "/")
}

// checkPath refuses names that escaping leaves as they are and that mean another path: a
// subscription "..", for one, would be its topic.
func checkPath(path string) error {
	path, _, _ = strings.Cut(path, "?")
	for s := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if s == "" || s == "." || s == ".." {
			return Usage(fmt.Errorf("%q cannot be a name", s))
		}
	}
	return nil
}

// Do sends a request with body, if it is not nil, and reads the answer into
// result, if that is not nil.
func (a *API) Do(ctx context.Context, method, path string, body, result any) error {
	if err := checkPath(path); err != nil {
		return err
	}
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, a.base+path, content)
	if err != nil {
		return err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if a.rule.Name != "" {
		req.Header.Set("Authorization", sas.Sign("http://"+a.host+"/", a.rule.Name, a.rule.PrimaryKey, time.Now().Add(tokenLife)))
	}
	resp, err := a.http.Do(req)
	if err != nil {
		return Advise(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if resp.StatusCode >= 300 {
		return refusal(resp, text)
	}
	if result == nil || len(text) == 0 {
		return nil
	}
	if err := json.Unmarshal(text, result); err != nil {
		return fmt.Errorf("the answer is not what was expected (is it a TriageMQ broker of this version?): %w", err)
	}
	return nil
}

// refusal reads why a request failed.
func refusal(resp *http.Response, text []byte) error {
	var told struct {
		Error *apiError `json:"error"`
	}
	if json.Unmarshal(text, &told) == nil && told.Error != nil {
		told.Error.Status = resp.StatusCode
		return told.Error
	}
	return fmt.Errorf("the broker answered %s: %s", resp.Status, strings.TrimSpace(string(text[:min(len(text), 200)])))
}

// ListAll reads all pages of a list.
func ListAll[T any](ctx context.Context, a *API, path string, query url.Values) ([]T, error) {
	if query == nil {
		query = url.Values{}
	}
	query.Set("top", strconv.Itoa(pageSize))
	all := []T{}
	for {
		var page struct {
			Items []T `json:"items"`
			Total int `json:"total"`
		}
		query.Set("skip", strconv.Itoa(len(all)))
		if err := a.Do(ctx, http.MethodGet, path+"?"+query.Encode(), nil, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if len(page.Items) == 0 || len(all) >= page.Total {
			return all, nil
		}
	}
}

// Removed is what the API answers to a purge.
type Removed struct {
	Removed int          `json:"removed"`
	Next    client.SeqNo `json:"next,omitzero"`
}
