// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/internal/address"
	"github.com/triagemq/triagemq/internal/sas"
)

// Options are the settings of a client besides the address; nil is the default.
type Options struct {
	// TLS adds to the system's settings, such as a CA of one's own.
	TLS *tls.Config
	// DialContext opens TCP connections; default [net.Dialer].
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
}

// Client manages one broker.
type Client struct {
	base string // URL of the API
	at   address.Address
	http http.Client
}

const (
	apiRoot   = "/api/v1"
	tokenLife = 5 * time.Minute // long enough for one request
	pageSize  = 1000            // the most that the API lists at a time
	// maxAnswer bounds what is read of an answer: a page of the largest definitions.
	maxAnswer = 256 << 20
)

// transports are the schemes of addresses with the ports of their HTTP.
var transports = map[string]struct{ scheme, port string }{
	"amqp": {"http", "5672"}, "amqps": {"https", "5671"}, "sb": {"https", "5671"},
	"ws": {"http", "80"}, "wss": {"https", "443"},
}

// New makes a client for the broker at a connection string or URL, as [client.Dial]
// takes them. It does not connect. The key needs the right to manage.
func New(brokerAddress string, o *Options) (*Client, error) {
	a, err := address.Parse(brokerAddress)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", client.ErrAddress, err)
	}
	scheme := a.Scheme
	if a.WebSocket {
		scheme = map[string]string{"amqp": "ws", "amqps": "wss"}[scheme]
	}
	t, ok := transports[scheme]
	if !ok {
		return nil, fmt.Errorf("%w: scheme %q is none of amqp, amqps, ws, wss, sb", client.ErrAddress, a.Scheme)
	}
	if o == nil {
		o = &Options{}
	}
	return &Client{
		base: t.scheme + "://" + a.HostPort(t.port) + apiRoot, at: a,
		http: http.Client{
			Transport: &http.Transport{
				DialContext: o.DialContext, TLSClientConfig: o.TLS, ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute,
			},
			// What is meant for one path, and the keys in it, goes to no other.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Close ends idle connections.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// operation is one request. Its text is for errors, its entity what it is about.
type operation struct {
	text, entity string
	method, path string
	query        url.Values
	body         any // nil for none
}

// call sends a request and reads its answer into result, if that is not nil.
func (c *Client) call(ctx context.Context, op operation, result any) error {
	err := c.roundTrip(ctx, op, result)
	switch {
	case err == nil:
		return nil
	case op.entity == "":
		return fmt.Errorf("%s: %w", op.text, err)
	default:
		return fmt.Errorf("%s %q: %w", op.text, op.entity, err)
	}
}

func (c *Client) roundTrip(ctx context.Context, op operation, result any) error {
	if err := checkPath(op.path); err != nil {
		return err
	}
	var content io.Reader
	if op.body != nil {
		text, err := json.Marshal(op.body)
		if err != nil {
			return fmt.Errorf("%w: %w", client.ErrInvalid, err)
		}
		content = bytes.NewReader(text)
	}
	target := c.base + op.path
	if len(op.query) > 0 {
		target += "?" + op.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, op.method, target, content)
	if err != nil {
		return err
	}
	if op.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	c.authorize(req)
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if resp.StatusCode >= 300 {
		return refusal(op.entity, resp.StatusCode, text)
	}
	if result == nil || len(text) == 0 {
		return nil
	}
	if err := json.Unmarshal(text, result); err != nil {
		return fmt.Errorf("the answer is not one of a TriageMQ broker of this version: %w", err)
	}
	return nil
}

func (c *Client) authorize(req *http.Request) {
	token := c.at.Signature
	if name := cmp.Or(c.at.KeyName, c.at.User); token == "" && name != "" {
		token = sas.Sign("http://"+c.at.Hostname()+"/", name, cmp.Or(c.at.Key, c.at.Password), time.Now().Add(tokenLife))
	}
	if token != "" {
		req.Header.Set("Authorization", token)
	}
}

// kinds are the Err variables for the codes of the API.
var kinds = map[string]error{
	"not_found": client.ErrNotFound, "pool_not_found": client.ErrNotFound, "message_not_found": client.ErrMessageNotFound,
	"exists": client.ErrExists, "disabled": client.ErrDisabled, "not_allowed": client.ErrNotAllowed,
	"invalid": client.ErrInvalid, "bad_request": client.ErrInvalid, "syntax": client.ErrInvalid, "evaluation": client.ErrInvalid,
	"too_large": client.ErrTooLarge, "quota": client.ErrQuota, "disk_full": client.ErrQuota,
	"unauthorized": client.ErrUnauthorized, "forbidden": client.ErrUnauthorized,
	"busy": client.ErrBusy, "stopping": client.ErrBusy, "moved": client.ErrBusy,
}

// refusal reads why a request failed.
func refusal(entity string, status int, text []byte) error {
	var told struct {
		Error *struct {
			Code    string `json:"code"`
			Message string `json:"message"`
			Details []struct {
				Field   string `json:"field"`
				Problem string `json:"problem"`
			} `json:"details"`
		} `json:"error"`
	}
	if json.Unmarshal(text, &told) != nil || told.Error == nil {
		return &client.Error{Code: strconv.Itoa(status), Entity: entity,
			Description: "the answer is not one of a TriageMQ broker: " + string(text[:min(len(text), 200)])}
	}
	description := told.Error.Message
	for _, d := range told.Error.Details {
		if !strings.Contains(description, d.Problem) {
			description += "\n" + d.Field + ": " + d.Problem
		}
	}
	return &client.Error{Code: told.Error.Code, Entity: entity, Description: description, Kind: kinds[told.Error.Code]}
}

// path joins the segments of a path; names may have slashes.
func path(segments ...string) string {
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	return "/" + strings.Join(segments, "/")
}

// checkPath refuses names that escaping leaves as they are and that mean another path: a
// subscription "..", for one, would be its topic.
func checkPath(path string) error {
	for s := range strings.SplitSeq(path[1:], "/") {
		if s == "" || s == "." || s == ".." {
			return fmt.Errorf("%w: %q cannot be a name", client.ErrInvalid, s)
		}
	}
	return nil
}

// get reads one thing.
func get[T any](ctx context.Context, c *Client, text, entity, path string) (T, error) {
	var out T
	err := c.call(ctx, operation{text: text, entity: entity, method: http.MethodGet, path: path}, &out)
	return out, err
}

// put sends one thing and reads what became of it.
func put[T any](ctx context.Context, c *Client, method, text, entity, path string, body any) (T, error) {
	var out T
	err := c.call(ctx, operation{text: text, entity: entity, method: method, path: path, body: body}, &out)
	return out, err
}

// remove deletes one thing.
func (c *Client) remove(ctx context.Context, text, entity, path string) error {
	return c.call(ctx, operation{text: text, entity: entity, method: http.MethodDelete, path: path}, nil)
}

// list reads all pages of a list.
func list[T any](ctx context.Context, c *Client, text, entity, path string) ([]T, error) {
	all := []T{}
	for {
		var page struct {
			Items []T `json:"items"`
			Total int `json:"total"`
		}
		query := url.Values{"top": {strconv.Itoa(pageSize)}, "skip": {strconv.Itoa(len(all))}}
		err := c.call(ctx, operation{text: text, entity: entity, method: http.MethodGet, path: path, query: query}, &page)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if len(page.Items) == 0 || len(all) >= page.Total {
			return all, nil
		}
	}
}
