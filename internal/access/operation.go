// SPDX-License-Identifier: Apache-2.0

package access

import (
	"cmp"

	"github.com/triagemq/triagemq/internal/amqp/names"
)

// Operation says which right something needs that can be asked for at more than one door:
// by a request over AMQP, by a route of the JSON API.
type Operation struct {
	What string
	// Needs is the right to the entity, or to the namespace if it is about none. Zero is any
	// right to it over AMQP; a route is open to all then.
	Needs Rights
	// Own is what it needs where it is about what the caller itself has; zero is Needs.
	Own Rights
	// ByAMQP is what it needs over AMQP, where that is another right, and Why says why.
	ByAMQP Rights
	Why    string

	AMQP []string // names of requests
	HTTP []string // IDs of routes; atom, restSend and restReceive are the service's own API
}

// operations are all of them. What changes the work of others needs Manage; what Send and
// Listen allow beyond sending and receiving is in the guide, in security.md.
var operations = []Operation{
	{What: "send, schedule, cancel", Needs: Send,
		AMQP: []string{names.ScheduleMessage, names.CancelScheduledMessage},
		HTTP: []string{"sendToQueue", "sendToTopic", "restSend"}},
	{What: "receive and settle", Needs: Listen,
		AMQP: []string{names.ReceiveBySequenceNumber, names.RenewLock, names.UpdateDisposition, names.SaveState},
		HTTP: []string{"restReceive"}},
	{What: "sessions", Needs: Listen,
		AMQP: []string{names.RenewSessionLock, names.GetSessionState, names.SetSessionState, names.GetMessageSessions}},
	{What: "peek", Needs: Listen,
		AMQP: []string{names.PeekMessage},
		HTTP: []string{
			"peekQueueMessages", "getQueueMessage", "peekSubscriptionMessages", "getSubscriptionMessage", "peekTopicMessages",
			"peekQueueDeadLetters", "getQueueDeadLetter", "peekSubscriptionDeadLetters", "getSubscriptionDeadLetter",
			"peekTopicDeadLetters", "getTopicDeadLetter",
		}},
	{What: "delete messages, as a receiver can", Needs: Listen,
		AMQP: []string{names.BatchDeleteMessages},
		HTTP: []string{
			"deleteQueueMessage", "purgeQueueMessages", "deleteSubscriptionMessage", "purgeSubscriptionMessages",
			"deleteQueueDeadLetter", "purgeQueueDeadLetters", "deleteSubscriptionDeadLetter", "purgeSubscriptionDeadLetters",
			"deleteTopicDeadLetter", "purgeTopicDeadLetters",
		}},
	{What: "send dead letters again", Needs: Manage,
		HTTP: []string{"redriveQueueDeadLetters", "redriveSubscriptionDeadLetters", "redriveTopicDeadLetters"}},
	{What: "see how long messages wait", Needs: Listen,
		HTTP: []string{"listObjectives", "getObjectives", "getDemand"}},

	{What: "the rules of a subscription", Needs: Manage,
		ByAMQP: Listen,
		Why:    "the rule manager of the service's clients works with Listen: who has that can take every message of the subscription",
		AMQP:   []string{names.AddRule, names.RemoveRule, names.EnumerateRules},
		HTTP:   []string{"listRules", "createRule", "getRule", "putRule", "deleteRule"}},

	{What: "the number of partitions of a hub, and what is in them",
		AMQP: []string{names.Read}},
	{What: "read the state of a consumer group", Needs: Manage,
		ByAMQP: Listen,
		Why:    "processors begin at the checkpoints, and see no more than those and their owners",
		AMQP:   []string{names.GroupRead, names.GroupOwnership},
		HTTP:   []string{"listGroups", "getGroup"}},
	{What: "be a member of a consumer group, or claim partitions; checkpoint what is held", Needs: Listen,
		AMQP: []string{names.GroupReport, names.GroupLeave, names.GroupCheckpoint, names.GroupClaim, names.GroupSetCheckpoint}},
	{What: "release a partition of a consumer group", Needs: Manage, Own: Listen,
		AMQP: []string{names.GroupRelease},
		HTTP: []string{"releasePartition"}},
	{What: "rewind a consumer group", Needs: Manage, Own: Listen,
		AMQP: []string{names.GroupRewind},
		HTTP: []string{"rewindGroup"}},
	{What: "pause and resume a consumer group", Needs: Manage,
		AMQP: []string{names.GroupPause},
		HTTP: []string{"pauseGroup", "resumeGroup"}},

	{What: "announce a process of a worker pool", Needs: Listen,
		AMQP: []string{names.AnnouncePool}},
	{What: "list worker pools", Needs: Listen,
		HTTP: []string{"listPools"}},
	{What: "give orders to worker pools", Needs: Manage,
		HTTP: []string{"pausePool", "resumePool", "resizePool"}},

	{What: "see the namespace, with its connections", Needs: Manage,
		HTTP: []string{"getNamespace", "listConnections"}},
	{What: "the description of the API",
		HTTP: []string{"getDocument"}},
	{What: "define entities", Needs: Manage,
		HTTP: []string{
			"listQueues", "createQueue", "getQueue", "putQueue", "patchQueue", "deleteQueue",
			"listTopics", "createTopic", "getTopic", "putTopic", "patchTopic", "deleteTopic", "tryTopic",
			"listSubscriptions", "createSubscription", "getSubscription", "putSubscription", "patchSubscription", "deleteSubscription",
			"listHubs", "createHub", "getHub", "getPartition", "putHub", "patchHub", "deleteHub", "createGroup", "putGroup", "deleteGroup",
			"atom",
		}},
	{What: "pause and resume entities", Needs: Manage,
		HTTP: []string{"pauseQueue", "resumeQueue", "pauseTopic", "resumeTopic", "pauseSubscription", "resumeSubscription"}},
	{What: "policies", Needs: Manage,
		HTTP: []string{"getPolicy", "setPolicy", "deletePolicy", "tryPolicy", "explainQueueMessage", "explainSubscriptionMessage"}},
}

// nobody is a right that no rule has.
const nobody Rights = 1 << 7

// index is the table by the names of requests and the IDs of routes.
type index struct {
	requests, own map[string]Rights
	routes        map[string]Rights
}

var table = newIndex()

func newIndex() index {
	x := index{requests: make(map[string]Rights), own: make(map[string]Rights), routes: make(map[string]Rights)}
	for _, o := range operations {
		byAMQP := cmp.Or(o.ByAMQP, o.Needs)
		for _, name := range o.AMQP {
			x.requests[name], x.own[name] = byAMQP, cmp.Or(o.Own, byAMQP)
		}
		for _, id := range o.HTTP {
			x.routes[id] = o.Needs
		}
	}
	return x
}

// Operations returns the table of what can be asked for, and which right it needs.
func Operations() []Operation { return operations }

// OfRequest returns the right that a request over AMQP needs, and what it needs where it is
// about what the caller itself has. Nobody has the right to one that is not in the table.
func OfRequest(name string) (needs, own Rights) {
	if needs, ok := table.requests[name]; ok {
		return needs, table.own[name]
	}
	return nobody, nobody
}

// OfRoute returns the right that a route of the JSON API needs; zero is that it is open to
// all. Nobody has the right to one that is not in the table.
func OfRoute(id string) Rights {
	if needs, ok := table.routes[id]; ok {
		return needs
	}
	return nobody
}
