// SPDX-License-Identifier: Apache-2.0

package archtest

// room says what a package may import. Packages go by their path below the module,
// without internal/. A trailing /* stands for the packages below, a lone * for
// everything.
type room struct {
	may   []string // of ours
	never []string // of the standard library, with everything below it
}

// pure are the imports that a state machine has no use for: it is given the time,
// the randomness and the bytes it needs, and runs on its caller's goroutine.
var pure = []string{"os", "net", "sync", "log/slog", "math/rand", "context"}

// coreRooms are the state machines. Their sources are also searched for clocks.
var coreRooms = []string{"queue", "stream", "filter", "policy"}

// rooms is the table of arrows. A package that is not in it takes the row of the
// nearest package above it; a package with no row at all fails the test.
var rooms = map[string]room{
	// Standing on nothing of ours.
	"vfs":       {},
	"lifecycle": {},
	"clock":     {},
	"budget":    {},
	"invariant": {},
	"script":    {},
	"archtest":  {},
	"limits":    {},

	// Definitions and encodings.
	"entity":     {may: []string{"limits"}},
	"amqp/codec": {may: []string{"limits"}},

	// The log.
	"journal": {may: []string{"vfs", "invariant", "journal", "journal/*"}, never: []string{"net", "os"}},

	// The state.
	"message": {may: []string{"amqp/codec", "limits"}},
	"queue":   {may: []string{"message", "invariant"}, never: pure},
	"stream":  {may: []string{"message", "invariant"}, never: pure},
	"filter":  {may: []string{"message", "amqp/codec", "limits"}, never: pure},
	"policy":  {may: []string{"filter", "message", "amqp/codec", "entity", "limits"}, never: pure},

	// What is promised and measured: numbers only.
	"objective": {never: pure},

	// The broker.
	"access": {may: []string{"entity", "limits"}},
	"shard":  {may: []string{"queue", "stream", "message", "amqp/codec", "journal", "clock", "invariant"}, never: []string{"net", "os"}},
	"broker": {
		may:   []string{"shard", "queue", "stream", "filter", "policy", "objective", "message", "amqp/codec", "entity", "access", "journal", "clock", "limits"},
		never: []string{"net", "os"},
	},

	// The wire.
	"amqp/frame":    {may: []string{"amqp/codec", "limits"}, never: []string{"net"}},
	"amqp/endpoint": {may: []string{"amqp/frame", "amqp/codec", "broker", "message", "budget", "limits"}, never: []string{"os"}},

	// What both Azure personalities share, and the personalities, which it does not know.
	"azure":           {may: []string{"azure/*", "amqp/*", "broker", "message", "entity", "access", "budget", "limits"}, never: []string{"os"}},
	"azure/condition": {may: []string{"amqp/*", "broker", "message", "access", "limits"}, never: []string{"os", "net"}},
	"servicebus":      {may: []string{"azure", "azure/*", "servicebus/*", "amqp/*", "broker", "queue", "message", "entity", "access", "budget", "limits"}, never: []string{"os", "net"}},
	"eventhubs":       {may: []string{"azure", "azure/*", "eventhubs/*", "amqp/*", "broker", "stream", "message", "entity", "access", "budget", "limits"}, never: []string{"os", "net"}},
	"admin": {
		may: []string{"admin/*", "broker", "queue", "message", "amqp/codec", "entity", "access", "filter", "policy", "objective", "budget", "limits", "web"},
	},

	// Assembly.
	"config": {may: []string{"entity"}},
	"apply":  {may: []string{"config", "entity"}, never: pure},
	"server": {may: []string{"*"}},
	"sim":    {may: []string{"*"}},

	// A broker without a wire, for tests.
	"brokertest": {may: []string{"broker", "shard", "queue", "message", "entity", "journal", "journal/wal", "vfs"}},

	// Who tries, in the tests of rights.
	"access/accesstest": {may: []string{"access", "entity"}},

	// What users run and import.
	"cmd/triagemq": {may: []string{"server", "config", "apply", "client", "worker", "processor", "entity", "access", "filter", "policy", "journal", "journal/*", "vfs", "load"}},
	"client":       {may: []string{"amqp/*"}},
	"worker":       {may: []string{"client"}},
	"processor":    {may: []string{"client"}},
	"triagetest":   {may: []string{"server", "config", "vfs", "client", "entity"}},
	"web":          {},
	"api":          {},

	// The load generator speaks the wire with our own codec; what is in bench
	// measures other clients, other brokers and the disk, and has a server that
	// does nothing to compare with.
	"load":  {may: []string{"amqp/codec", "amqp/frame", "message", "objective"}},
	"bench": {may: []string{"amqp/codec", "amqp/frame", "journal", "journal/wal", "load", "objective", "vfs"}},

	// Examples show what users can do; the first one shows the core, before
	// there is a wire to show it through.
	"examples":           {may: []string{"client", "worker", "processor", "triagetest", "examples/*"}},
	"examples/firstdemo": {may: []string{"*"}},
	"test":               {may: []string{"*"}},
}
