// SPDX-License-Identifier: Apache-2.0

package archtest

// pkgRule says what a package may import. Packages are named by their path
// below the module, without internal/. A trailing /* means the packages below,
// a lone * means all packages.
type pkgRule struct {
	may   []string // of ours
	never []string // of the standard library, with everything below it
}

// pure are the imports that a state machine must not have. Time, randomness and
// bytes are arguments, and it runs on its caller's goroutine.
var pure = []string{"os", "net", "sync", "log/slog", "math/rand", "context"}

// corePkgs are the state machines. Their sources are also searched for clocks.
var corePkgs = []string{"machine", "queue", "stream", "group", "filter", "policy", "ordering"}

// pkgRules is the table of allowed imports. A package without a row uses the
// row of the nearest package above it. A package without any row fails the
// test.
var pkgRules = map[string]pkgRule{
	// These import no package of ours.
	"vfs":       {},
	"lifecycle": {},
	"clock":     {},
	"budget":    {},
	"turns":     {never: []string{"net", "os", "time"}},
	"invariant": {},
	"script":    {},
	"archtest":  {},
	"limits":    {},
	"notify":    {},
	"sas":       {},
	"address":   {},

	// Definitions and encodings.
	"entity":     {may: []string{"limits"}},
	"amqp/codec": {may: []string{"limits"}},
	"amqp/names": {never: pure},
	"ordering":   {never: pure},

	// The log.
	"journal":            {may: []string{"vfs", "invariant", "notify", "journal", "journal/*"}, never: []string{"net", "os"}},
	"journal/wal/format": {may: []string{"journal"}, never: pure}, // bytes only
	"journal/wal/store":  {may: []string{"journal", "journal/wal/format", "vfs"}, never: []string{"net", "os", "context", "time"}},
	"journal/wal/repair": {may: []string{"journal", "journal/wal/format", "journal/wal/store", "vfs"}, never: []string{"net", "os", "context", "time"}},

	// The state.
	"message": {may: []string{"amqp/codec", "amqp/names", "limits"}},
	"machine": {never: pure}, // the contract of all state machines
	"queue":   {may: []string{"machine", "message", "ordering", "invariant", "queue/*"}, never: pure},
	"stream":  {may: []string{"machine", "message", "invariant"}, never: pure},
	"group":   {may: []string{"machine", "stream"}, never: pure},
	"filter":  {may: []string{"filter/*", "message", "amqp/codec", "limits"}, never: pure},
	"policy":  {may: []string{"filter", "filter/*", "message", "ordering", "amqp/codec", "entity", "limits"}, never: pure},

	// The parts of a queue. None imports the queue.
	"queue/entries": {may: []string{"machine", "ordering"}, never: pure},
	"queue/order":   {may: []string{"machine", "ordering", "queue/entries"}, never: pure},
	"queue/lease":   {may: []string{"queue/entries"}, never: pure},
	"queue/record":  {may: []string{"machine", "ordering", "queue/entries", "queue/lease"}, never: pure}, // bytes only
	"queue/state":   {may: []string{"machine", "ordering", "invariant", "queue/entries", "queue/order", "queue/lease", "queue/record", "queue/session"}, never: pure},
	"queue/session": {may: []string{"machine", "ordering", "queue/entries", "queue/order", "queue/lease"}, never: pure},

	"policy/admission": {may: []string{"policy"}, never: pure},

	// The parts of the filter language. None imports filter.
	"filter/value": {may: []string{"amqp/codec"}, never: pure},

	// Objectives and measurements: numbers only.
	"objective": {never: pure},

	// The broker.
	"access":           {may: []string{"amqp/names", "entity", "limits", "sas"}},
	"engine":           {may: []string{"engine/retention", "machine", "journal", "clock", "notify"}, never: []string{"net", "os"}},
	"engine/retention": {may: []string{"machine", "journal"}, never: pure},
	"queueserver":      {may: []string{"queueserver/*", "engine", "machine", "queue", "stream", "objective", "message", "journal", "clock", "budget", "invariant", "notify"}, never: []string{"net", "os"}},

	"streamserver": {may: []string{"engine", "machine", "stream", "stream/*", "group", "journal", "clock", "budget", "invariant", "notify"}, never: []string{"net", "os"}},
	// The logs of hubs know both the journal on disk and the hub on it.
	"hubs": {may: []string{"streamserver", "journal", "journal/wal", "vfs"}, never: []string{"net", "os"}},

	// Parts of a shard that only compute.
	"queueserver/bodies":   {may: []string{"engine", "queue", "message", "amqp/codec", "journal"}, never: []string{"net", "os", "sync", "time", "context"}},
	"queueserver/arrivals": {may: []string{"queue", "journal"}, never: pure},
	"queueserver/recall":   {may: []string{"queue"}, never: pure},

	"monitor": {may: []string{"queueserver", "queue", "policy", "policy/admission", "objective"}, never: []string{"net", "os", "sync", "context"}},
	"broker": {
		may:   []string{"broker/*", "queueserver", "streamserver", "queue", "stream", "group", "filter", "filter/*", "policy", "ordering", "objective", "message", "amqp/codec", "entity", "access", "journal", "clock", "budget", "limits", "notify", "pools", "turns"},
		never: []string{"net", "os"},
	},

	"broker/catalog": {
		may:   []string{"broker/catalog/*", "queueserver", "streamserver", "queue", "filter", "filter/*", "policy", "ordering", "message", "amqp/codec", "entity", "clock", "budget", "limits", "turns"},
		never: []string{"net", "os"},
	},

	// The list of worker pools: bounded, and without a clock.
	"pools": {may: []string{"limits"}, never: []string{"os", "net", "log/slog", "math/rand", "context"}},

	"broker/catalog/validate": {may: []string{"filter", "filter/*", "policy", "entity", "limits"}, never: []string{"net", "os", "sync", "context"}},
	"broker/catalog/errtext":  {may: []string{"policy", "entity"}, never: []string{"net", "os", "sync", "context"}},

	"broker/jobs": {never: []string{"net", "os"}},
	"broker/jobs/alerts": {
		may:   []string{"broker/catalog", "broker/jobs", "queueserver", "queue", "message", "amqp/codec", "objective", "policy"},
		never: []string{"net", "os"},
	},
	"broker/jobs/idle": {
		may:   []string{"broker/catalog", "broker/jobs", "queueserver", "clock"},
		never: []string{"net", "os"},
	},
	"broker/jobs/measure": {
		may:   []string{"broker/catalog", "broker/jobs", "broker/jobs/alerts", "queueserver", "objective"},
		never: []string{"net", "os"},
	},
	"broker/jobs/reclassify": {
		may:   []string{"broker/catalog", "broker/jobs", "queueserver", "queue", "policy", "entity"},
		never: []string{"net", "os"},
	},
	"broker/jobs/redrive": {
		may:   []string{"broker/catalog", "queueserver", "queue", "message", "entity"},
		never: []string{"net", "os"},
	},
	"broker/jobs/forward": {
		may:   []string{"broker/catalog", "broker/catalog/errtext", "broker/jobs", "budget", "queueserver", "queue", "message", "amqp/codec", "entity"},
		never: []string{"net", "os"},
	},

	// The wire.
	"amqp/frame":    {may: []string{"amqp/codec", "limits"}, never: []string{"net"}},
	"amqp/endpoint": {may: []string{"amqp/frame", "amqp/codec", "amqp/names", "broker", "message", "budget", "limits", "notify"}, never: []string{"os"}},

	// What both Azure personalities share, and the personalities, which it does not know.
	"azure":           {may: []string{"azure/*", "amqp/*", "broker", "message", "entity", "access", "budget", "limits"}, never: []string{"os", "net"}},
	"azure/condition": {may: []string{"amqp/*", "broker", "message", "access", "limits"}, never: []string{"os", "net"}},
	"azure/wire":      {may: []string{"amqp/*", "message", "entity", "access"}, never: []string{"os", "sync", "context"}},
	"azure/outbox":    {may: []string{"amqp/endpoint", "broker", "budget"}, never: []string{"os", "net", "context"}},
	"servicebus":      {may: []string{"azure", "azure/*", "servicebus/*", "amqp/*", "broker", "queue", "message", "entity", "access", "budget", "limits"}, never: []string{"os", "net"}},
	"eventhubs":       {may: []string{"azure", "azure/*", "eventhubs/*", "amqp/*", "broker", "stream", "message", "entity", "access", "budget", "limits"}, never: []string{"os", "net"}},

	"admin": {
		may: []string{"admin/*", "sas", "broker", "queue", "message", "amqp/codec", "entity", "access", "filter", "filter/*", "policy", "objective", "budget", "limits", "turns", "web"},
	},

	"admin/schema": {never: pure},

	// Assembly.
	"config":             {may: []string{"entity", "window"}},
	"apply":              {may: []string{"config", "entity"}, never: pure},
	"server":             {may: []string{"*"}},
	"server/connlimit":   {may: []string{"access"}, never: []string{"os", "net/http"}},
	"server/webhook":     {may: []string{"broker", "entity", "turns"}, never: []string{"os"}},
	"server/credentials": {may: []string{"access", "vfs"}, never: []string{"net/http"}},
	"sim":                {may: []string{"*"}},

	// A suite that every state machine passes.
	"machine/machinetest": {may: []string{"machine"}},

	// A broker without a wire, for tests.
	"brokertest": {may: []string{"broker", "hubs", "monitor", "queueserver", "queue", "message", "entity", "journal", "journal/wal", "vfs"}},

	// Callers with different rights, for the tests of access control.
	"access/accesstest": {may: []string{"access", "entity"}},

	// What users run and import.
	"cli/work":       {may: []string{"cli", "client", "config", "entity", "worker", "worker/program"}},
	"cmd/triagemq":   {may: []string{"cli", "cli/*"}},
	"cli":            {may: []string{"client", "config", "entity", "access", "sas", "filter", "filter/*", "policy", "load"}},
	"cli/entities":   {may: []string{"cli", "client", "config", "apply", "entity", "policy", "server"}},
	"cli/pools":      {may: []string{"cli"}},
	"cli/messages":   {may: []string{"cli", "client", "entity", "policy"}},
	"cli/host":       {may: []string{"cli", "server", "server/credentials", "config", "entity", "access", "policy", "journal", "journal/wal/repair", "vfs", "load"}},
	"client":         {may: []string{"address", "amqp/*", "message", "notify", "sas"}}, // message for events as they are stored
	"client/admin":   {may: []string{"client", "address", "sas", "entity"}},            // entity for the text of durations and values
	"worker":         {may: []string{"client", "worker/*", "backoff", "window", "autoscale", "amqp/names"}},
	"worker/program": {may: []string{"client", "worker"}},
	"tracing":        {may: []string{"client", "worker"}},
	"backoff":        {},
	"window":         {},
	"autoscale":      {never: pure},
	"processor":      {may: []string{"backoff", "client", "processor"}},
	"triagetest":     {may: []string{"server", "config", "vfs", "client", "entity"}},
	"web":            {},
	"api":            {},

	// The load generator uses our own codec. The programs in bench measure other
	// clients, other brokers and the disk, and contain a server that does nothing,
	// to compare with.
	"load":             {may: []string{"address", "amqp/codec", "amqp/frame", "amqp/names", "message", "objective"}},
	"bench/processors": {may: []string{"client", "processor"}},
	"bench":            {may: []string{"amqp/codec", "amqp/frame", "journal", "journal/wal", "load", "notify", "objective", "vfs"}},

	// Examples show what users can do.
	"examples": {may: []string{"client", "client/admin", "worker", "processor", "triagetest", "examples/*"}},
	"test":     {may: []string{"*"}},
}
