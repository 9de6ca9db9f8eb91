// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/triagemq/triagemq/internal/admin/atom"
	"github.com/triagemq/triagemq/internal/admin/caller"
	"github.com/triagemq/triagemq/internal/admin/metrics"
	"github.com/triagemq/triagemq/internal/admin/rest"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/turns"
)

// Parts is what the handlers work with. Broker, Callers and Log are required.
type Parts struct {
	Broker  *broker.Broker
	Callers caller.Authorities
	Log     *slog.Logger
	// Namespace is what the broker calls itself; empty is triagemq.
	Namespace string
	// Encrypted reports whether a request uses TLS, for the links in answers; nil
	// uses only the request itself.
	Encrypted func(*http.Request) bool
	// Connections lists up to top of the open connections without the first skip, and returns
	// how many there are; nil is none.
	Connections func(ctx context.Context, skip, top int) ([]Connection, int)
	// ConnectionCount returns how many connections are open; nil is none.
	ConnectionCount func() int
	// Unsynced returns what is charged for the messages of a request that are not on disk yet;
	// nil is no limit.
	Unsynced func(*http.Request) *budget.Account
	// Memory returns the memory that peers use; nil is none.
	Memory func() budget.Usage
	// ChargeMemory charges memory until the handler of a request returns, and
	// reports whether there was space for it; nil is no limit.
	ChargeMemory func(*http.Request, int64) bool
	// Disk returns the state of the store's disk; nil is none.
	Disk func() metrics.Disk
	// Warnings returns what an operator has to do something about; nil is none.
	Warnings func() []string
	// Refusals returns how many logins and tokens were rejected, by reason; nil is
	// none.
	Refusals func() map[string]uint64
	// Site answers GET requests for paths that no API knows: the dashboard. Nil
	// is none.
	Site http.Handler
}

// Connection is a client that is connected by AMQP.
type Connection struct {
	Peer   string    `json:"peer"`
	Since  time.Time `json:"since"`
	Client string    `json:"client,omitzero"` // what it calls itself
	Links  []Link    `json:"links"`
}

// Link is one of a connection's links.
type Link struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	Role    string `json:"role"`   // sender or receiver, as the client sees it
	Credit  uint32 `json:"credit"` // messages that may still pass
}

// defaultNamespace is the name of a namespace without a configured name.
const defaultNamespace = "triagemq"

// New returns the handler of everything HTTP but health checks and WebSockets.
func New(p Parts) http.Handler {
	if p.Namespace == "" {
		p.Namespace = defaultNamespace
	}
	if p.Encrypted == nil {
		p.Encrypted = func(r *http.Request) bool { return r.TLS != nil }
	}
	if p.Connections == nil {
		p.Connections = func(context.Context, int, int) ([]Connection, int) { return nil, 0 }
	}
	if p.ConnectionCount == nil {
		p.ConnectionCount = func() int { return 0 }
	}
	if p.Unsynced == nil {
		none := budget.NoLimit()
		p.Unsynced = func(*http.Request) *budget.Account { return none }
	}
	if p.ChargeMemory == nil {
		p.ChargeMemory = func(*http.Request, int64) bool { return true }
	}
	working := turns.New(max(1, runtime.GOMAXPROCS(0)/2), 1)
	return &router{
		api: newAPI(p, time.Now(), working),
		metrics: metrics.New(metrics.Sources{Broker: p.Broker, Callers: p.Callers, Log: p.Log, Memory: p.Memory, Disk: p.Disk, Refusals: p.Refusals,
			Connections: p.ConnectionCount, ChargeMemory: p.ChargeMemory}),
		atom: atom.New(atom.Parts{Broker: p.Broker, Callers: p.Callers, Log: p.Log,
			Namespace: p.Namespace, Encrypted: p.Encrypted, Started: time.Now(), ChargeMemory: p.ChargeMemory, Turns: working}),
		rest: rest.New(rest.Parts{Broker: p.Broker, Callers: p.Callers, Log: p.Log, Encrypted: p.Encrypted, Unsynced: p.Unsynced, ChargeMemory: p.ChargeMemory,
			Turns: working}),
		site: p.Site,
	}
}

// router sends requests to the interface they belong to. Entities may be called
// almost anything, so the api-version of the service's own clients decides first.
type router struct {
	api, metrics, atom, rest http.Handler
	site                     http.Handler // nil without one
}

func (f *router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	path, get := r.URL.Path, r.Method == http.MethodGet || r.Method == http.MethodHead
	versioned := r.URL.Query().Has("api-version")
	switch {
	case !versioned && (path == apiRoot || strings.HasPrefix(path, apiRoot+"/")):
		f.api.ServeHTTP(w, r)
	case rest.Handles(r):
		f.rest.ServeHTTP(w, r)
	case versioned:
		f.atom.ServeHTTP(w, r)
	case path == "/metrics" && get:
		f.metrics.ServeHTTP(w, r)
	case f.site != nil && get && !strings.HasPrefix(path, "/$"):
		f.site.ServeHTTP(w, r)
	default:
		f.atom.ServeHTTP(w, r)
	}
}
