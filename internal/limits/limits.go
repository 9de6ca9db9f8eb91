// SPDX-License-Identifier: Apache-2.0

package limits

// Limits of a message.
const (
	// Name is how many characters a session id, a fair key, a message id, a
	// partition key or a reply-to session id may have: the broker keeps these in
	// memory and repeats some of them in each record. The service has the same limit.
	Name = 128
	// Property is how many bytes one application property may have, its name and
	// its value as encoded.
	Property = 32 << 10
	// Properties is how many bytes all application properties may have together.
	// They are read for each rule, so they are bounded apart from the body.
	Properties = 64 << 10
	// Fields is how many bytes the fields of the properties section may have
	// together: ids, addresses, subject, content type.
	Fields = 64 << 10
	// Annotations is how many bytes each of the other maps of a message may have:
	// message annotations, delivery annotations, footer.
	Annotations = 64 << 10
)

// Limits of sending.
const (
	// Batch is how many messages one batch may have. The service has the same
	// limit.
	Batch = 4500
	// Copies is how many copies one operation may store: the messages of a batch
	// times the subscriptions that match them. A batch is stored as a whole, by a
	// writer that many entities share, so its size determines how long others wait.
	// A single message is never rejected for it: see RuleActions and Subscriptions.
	Copies = 10_000
	// CopyBytes is how many bytes rule actions may add in one operation: each
	// action stores a separate body. A topic for larger messages may add one such
	// message.
	CopyBytes = 16 << 20
	// BatchSteps is how many steps rules and the conditions of policies may take for one batch, at some
	// twelve nanoseconds each. What they take for one message is bounded by itself.
	BatchSteps = 100_000_000
)

// Limits of settling and of other requests about messages.
const (
	// Tokens is how many lock tokens or sequence numbers one request may name.
	Tokens = 10_000
	// SettledBytes is how many bytes one settlement may write: the properties, reason
	// and description times the messages that get them.
	SettledBytes = 16 << 20
	// RetryDays is for how many days a message may wait for its next delivery.
	RetryDays = 366
	// SavedState is how many bytes the state may have that a consumer saves beside a message.
	SavedState = 64 << 10
	// PeekedMessages is how many messages one peek may ask for.
	PeekedMessages = 1000
	// SentByHTTP is how many messages one HTTP request may send.
	SentByHTTP = 1000
	// Listed is how many elements a page of a list has.
	Listed = 1000
	// Examined is how many messages a request with a filter reads.
	Examined = 20_000
	// Series bounds what one scrape of the metrics costs, here and at Prometheus.
	Series = 50_000
)

// Limits of rules and other definitions.
const (
	// SQL is how many characters a filter, an action, a condition of a policy or the
	// filter of a request may have. The service has the same limit.
	SQL = 1024
	// Rules is how many rules a subscription may have.
	Rules = 2000
	// RuleActions is how many rules with actions all subscriptions of a topic may
	// have together: each creates a copy. The service has the same limit.
	RuleActions = 2000
	// RuleText is how many characters a text in a correlation filter, or the value of
	// a parameter, may have.
	RuleText = 1024
	// RuleValues is how many properties a correlation filter, or parameters an
	// expression, may have.
	RuleValues = 64
	// Definition is how many bytes the definition of one entity may have, as JSON
	// with its rules and its policy. It is one record of the log. One that is larger
	// already can be made smaller.
	Definition = 1 << 20
	// Policy is how many bytes a policy may have.
	Policy = 256 << 10
	// UserMetadata is how many characters the user metadata of an entity may have.
	// The service has the same limit.
	UserMetadata = 1024
	// Entities is how many queues, topics and event hubs there may be. The service has a
	// tenth of it.
	Entities = 100_000
	// Subscriptions is how many subscriptions a topic may have. The service has the
	// same limit.
	Subscriptions = 2000
	// Hubs is how many event hubs there may be: each has a journal of its own, with
	// space that is reserved for it.
	Hubs = 1000
	// Partitions is how many partitions an event hub may have. The service has the same
	// limit.
	Partitions = 1024
	// ConsumerGroups is how many consumer groups an event hub may have. The service has
	// the same limit.
	ConsumerGroups = 1000
	// Member is how many bytes the ID, the run or the name of a member of a consumer group,
	// or the ID of a process of a pool, may have.
	Member = 256
	// MembersOfConnection is how many members of consumer groups there may be on one
	// connection: a process mostly has one.
	MembersOfConnection = 256
	// AuthorizationRules is how many keys an entity may have. The service has the
	// same limit.
	AuthorizationRules = 12
	// KeyText is how many characters the name of a key, or a key, may have.
	KeyText = 256
)

// Limits of worker pools that announce themselves.
const (
	// Pools is how many pools the broker knows. One queue or topic may have a tenth
	// of them.
	Pools = 1000
	// PoolInstances is how many processes all pools may have. One queue or topic may have a
	// tenth of them.
	PoolInstances = 10_000
	// PoolSources is how many queues and subscriptions one pool may name.
	PoolSources = 256
	// PoolText is how many characters the name of a pool, of its host or of one of its
	// sources may have.
	PoolText = 400
	// PoolSlots is how many slots a pool may be ordered to have.
	PoolSlots = 10_000
)

// Limits of answers.
const (
	// MessageJSON is how many bytes of JSON are made from the properties of one
	// message, and from a body that is an AMQP value. What is beyond it is left out,
	// and truncated is set.
	MessageJSON = 1 << 20
	// PeekJSON is how many bytes of JSON one answer with messages may have before it
	// ends, with a next to go on from.
	PeekJSON = 16 << 20
)

// Limits of what a peer may do that has not logged in. Clients need a session, two
// links and a token for that.
const (
	// EarlyFrame is how many bytes a frame may have before open.
	EarlyFrame = 4 << 10
	// UnauthenticatedFrame is how many bytes a frame may have after it.
	UnauthenticatedFrame = 16 << 10
	// UnauthenticatedAttach is how many bytes an attach may have.
	UnauthenticatedAttach = 4 << 10
	// UnauthenticatedSessions is how many sessions a connection may have.
	UnauthenticatedSessions = 16
	// UnauthenticatedLinks is how many links a connection may have.
	UnauthenticatedLinks = 16
	// UnauthenticatedAnswers is how many bytes of answers may wait to be written before the
	// peer is not read from any more.
	UnauthenticatedAnswers = 8 << 10
	// UnauthenticatedBody is how many bytes of the body of an HTTP request are read before
	// its sender is identified.
	UnauthenticatedBody = 4 << 10
	// Handshake is how many bytes a client may send in the handshake of TLS: a hello
	// of one or two KiB, and its certificates. The library keeps it until it is
	// complete.
	Handshake = 32 << 10
	// Token is how many bytes a token may have. It bounds the work that an
	// unauthenticated peer can cause.
	Token = 16 << 10
)

// Limits of what comes over AMQP, and of requests to the nodes of the broker.
const (
	// Depth is how deep values may be nested in one another.
	Depth = 64
	// EmptyElements is how many elements without bytes, such as nulls, an array may
	// have. Every other count is bounded by the received bytes.
	EmptyElements = 256
	// Symbols is how many symbols a field of an open or attach may have. Peers send a
	// handful; a decoded symbol takes more memory than its bytes.
	Symbols = 64
	// LinkName is how many bytes the name of a link may have: it is kept with the link and
	// shown in lists. Clients make names of less than 300 bytes.
	LinkName = 512
	// LinkAddress is how many bytes an address of a link, or the reply-to of a request,
	// may have: the longest path of an entity, with the host in front of it.
	LinkAddress = 2 << 10
	// ClientText is how many bytes are kept of what a client says about itself: its
	// container id or product, the host that it connects to, the host and the state of a
	// process of a pool.
	ClientText = 256
	// RefusedLinks is how many refused links, whose detach the peer has not
	// answered yet, a connection may have beyond its limit of links.
	RefusedLinks = 64
	// Request is how many bytes a request to $management may have: a batch of messages
	// to schedule, say.
	Request = 4 << 20
	// TokenRequest is how many bytes a request to $cbs may have: a token with what is
	// around it.
	TokenRequest = 64 << 10
	// Replies is how many replies may wait for the credit of a peer.
	Replies = 1000
	// TokenReplies is the same limit for $cbs. There the oldest replies are
	// dropped: a peer that does not read them must still be able to renew its
	// token.
	TokenReplies = 16
	// ReplyBytes is how many bytes of messages one reply may have.
	ReplyBytes = 8 << 20
	// Deleted is how many messages one request may delete.
	Deleted = 4000
	// TemporaryNode is how many bytes may wait for the reader of a temporary node.
	TemporaryNode = 8 << 20
)

// Limits of HTTP requests.
const (
	// Header is how many bytes the header of a request may have.
	Header = 64 << 10
	// Body is how many bytes the body of a request may have that defines something.
	// Messages have the limit of their entity.
	Body = 1 << 20
	// SmallFrames is how many frames with little or no content a WebSocket may bring at
	// once, and in each second: pieces of less than 16 bytes, pings.
	SmallFrames = 1000
	// Elements is how many elements one list, or members one object, in the JSON of a request
	// may have. JSON that is stored as it is, such as the body of a message, has no limit.
	Elements = 10_000
	// XMLElements is how many elements the XML of a request may have.
	XMLElements = 20_000
	// XMLDepth is how deep they may be nested in one another.
	XMLDepth = 16
	// Attributes is how many attributes an element in the XML of a request may have.
	Attributes = 64
	// BatchByHTTP is how many bytes a batch of messages may have, unless the entity
	// takes larger messages.
	BatchByHTTP = 4 << 20
)
