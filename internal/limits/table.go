// SPDX-License-Identifier: Apache-2.0

package limits

// Unit is what a limit counts.
type Unit string

// The units.
const (
	Characters Unit = "characters"
	Bytes      Unit = "bytes"
	Count      Unit = ""
)

// row is one row of the table for users.
type row struct {
	What string
	Most int64
	Unit Unit
}

// table is the table, in the order of docs/guide/limits.md.
var table = []row{
	{"Session id, message id, partition key, reply-to session id, fair key", Name, Characters},
	{"One application property, name and value", Property, Bytes},
	{"All application properties", Properties, Bytes},
	{"Fields of the properties section (ids, addresses, subject, content type)", Fields, Bytes},
	{"Message annotations, delivery annotations, footer, each", Annotations, Bytes},

	{"Messages in a batch", Batch, Count},
	{"Copies stored by one operation (batch × matching subscriptions)", Copies, Count},
	{"Bodies added by rule actions in one operation", CopyBytes, Bytes},
	{"Steps that rules and conditions take for one batch", BatchSteps, Count},

	{"Lock tokens or sequence numbers in one request", Tokens, Count},
	{"Properties to modify, reason and description × messages, in one settlement", SettledBytes, Bytes},
	{"Messages in one peek", PeekedMessages, Count},
	{"Days until a message is tried again", RetryDays, Count},
	{"State that a consumer saves of a message", SavedState, Bytes},
	{"Messages in one HTTP request", SentByHTTP, Count},
	{"Elements in a page of a list", Listed, Count},
	{"Messages that one request examines with a filter", Examined, Count},
	{"Series of one scrape of `/metrics`, of each kind", Series, Count},

	{"SQL: filter, action, condition of a policy, `?filter=`", SQL, Characters},
	{"Rules of a subscription", Rules, Count},
	{"Rules with actions of a topic", RuleActions, Count},
	{"A text in a correlation filter, a value of a parameter", RuleText, Characters},
	{"Properties of a correlation filter, parameters of an expression", RuleValues, Count},
	{"Definition of an entity, with rules and policy", Definition, Bytes},
	{"Policy", Policy, Bytes},
	{"User metadata", UserMetadata, Characters},
	{"Queues, topics and event hubs", Entities, Count},
	{"Subscriptions of a topic", Subscriptions, Count},
	{"Event hubs", Hubs, Count},
	{"Partitions of an event hub", Partitions, Count},
	{"Consumer groups of an event hub", ConsumerGroups, Count},
	{"Members of consumer groups on one connection", MembersOfConnection, Count},
	{"Bytes of the ID, run or name of a member of a consumer group, of the ID of a process of a pool", Member, Count},
	{"Keys of an entity", AuthorizationRules, Count},
	{"Name of a key, a key", KeyText, Characters},

	{"Pools", Pools, Count},
	{"Processes of all pools", PoolInstances, Count},
	{"Sources of a pool", PoolSources, Count},
	{"Name, host or source of a pool", PoolText, Characters},
	{"Slots that a pool is ordered to have", PoolSlots, Count},

	{"JSON made from the properties, or the AMQP value, of one message", MessageJSON, Bytes},
	{"JSON of one answer with messages", PeekJSON, Bytes},

	{"A frame before open", EarlyFrame, Bytes},
	{"A frame before login", UnauthenticatedFrame, Bytes},
	{"An attach before login", UnauthenticatedAttach, Bytes},
	{"Sessions before login", UnauthenticatedSessions, Count},
	{"Links before login", UnauthenticatedLinks, Count},
	{"Answers that are not read, before login", UnauthenticatedAnswers, Bytes},
	{"Body of an HTTP request without credentials", UnauthenticatedBody, Bytes},
	{"Handshake of TLS", Handshake, Bytes},
	{"Token", Token, Bytes},

	{"Values nested in one another", Depth, Count},
	{"Elements of an array without content, such as nulls", EmptyElements, Count},
	{"Symbols in a field of an open or attach", Symbols, Count},
	{"Name of a link, in bytes", LinkName, Count},
	{"Address of a link, reply-to of a request", LinkAddress, Bytes},
	{"Bytes that are kept of a client's container id or product, of its host name, of the host and the state of a process of a pool", ClientText, Count},
	{"Refused links whose detach is not answered", RefusedLinks, Count},
	{"Request to `$management`", Request, Bytes},
	{"Request to `$cbs`", TokenRequest, Bytes},
	{"Replies that wait for credit", Replies, Count},
	{"Replies of `$cbs` that wait for credit", TokenReplies, Count},
	{"Messages in one reply", ReplyBytes, Bytes},
	{"Messages that one request deletes", Deleted, Count},
	{"Messages that wait in a temporary node", TemporaryNode, Bytes},

	{"Header of an HTTP request", Header, Bytes},
	{"Body of an HTTP request that defines something", Body, Bytes},
	{"Body of an HTTP request that sends a batch", BatchByHTTP, Bytes},
	{"Elements of a list, members of an object, in JSON", Elements, Count},
	{"Elements in XML", XMLElements, Count},
	{"Elements nested in one another in XML", XMLDepth, Count},
	{"Attributes of an element in XML", Attributes, Count},
	{"Frames of a WebSocket without content, in a second", SmallFrames, Count},
}
