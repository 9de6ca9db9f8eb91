// SPDX-License-Identifier: Apache-2.0

package config

import (
	"github.com/goccy/go-yaml/ast"

	"github.com/triagemq/triagemq/internal/entity"
)

// The tables below are the keys of the file.

func (d *decoder) config(n node, c *Config) {
	d.object(n, fields{
		"namespace": d.text(&c.Namespace),
		"data":      d.text(&c.Data),
		"listeners": d.texts(&c.Listeners),
		"grace":     d.duration(&c.Grace),
		"tls": func(n node) {
			d.object(n, fields{
				"certFile":     d.text(&c.TLS.CertFile),
				"keyFile":      d.text(&c.TLS.KeyFile),
				"clientCAFile": d.text(&c.TLS.ClientCAFile),
			})
		},
		"security": func(n node) {
			d.object(n, fields{
				"rules":           d.authorizationRules(&c.Security.Rules, "name"),
				"dev":             d.boolean(&c.Security.Dev),
				"allowRemote":     d.boolean(&c.Security.AllowRemote),
				"insecure":        d.boolean(&c.Security.Insecure),
				"hosts":           d.texts(&c.Security.Hosts),
				"webhookNetworks": d.texts(&c.Security.WebhookNetworks),
			})
		},
		"storage": func(n node) {
			d.object(n, fields{
				"shards":        number(d, &c.Storage.Shards),
				"segmentSize":   d.size(&c.Storage.SegmentSize),
				"cacheSize":     d.size(&c.Storage.CacheSize),
				"snapshotAfter": d.size(&c.Storage.SnapshotAfter),
			})
		},
		"limits": func(n node) {
			d.object(n, fields{
				"memory":           d.size(&c.Limits.Memory),
				"storedMemory":     d.size(&c.Limits.StoredMemory),
				"maxConnections":   number(d, &c.Limits.MaxConnections),
				"maxLinks":         number(d, &c.Limits.MaxLinks),
				"maxFrameSize":     d.size(&c.Limits.MaxFrameSize),
				"handshakeTimeout": d.duration(&c.Limits.HandshakeTimeout),
				"idleTimeout":      d.duration(&c.Limits.IdleTimeout),
				"writeTimeout":     d.duration(&c.Limits.WriteTimeout),
			})
		},
		"queues": items(d, &c.Queues, d.queue),
		"topics": items(d, &c.Topics, d.topic),
		"hubs":   items(d, &c.Hubs, d.hub),
	})
}

// items reads a list of things.
func items[T any](d *decoder, into *[]T, read func(node, *T)) func(node) {
	return func(n node) {
		*into = []T{}
		d.list(n, func(item node) {
			var v T
			if item.Node == nil {
				d.expected(item, "keys with values")
			}
			read(item, &v)
			*into = append(*into, v)
		})
	}
}

func (d *decoder) queue(n node, q *entity.Queue) {
	d.object(n, fields{
		"name":                                d.text(&q.Name),
		"lockDuration":                        d.duration(&q.LockDuration),
		"maxSizeInMegabytes":                  number(d, &q.MaxSizeInMegabytes),
		"maxMessageCount":                     number(d, &q.MaxMessageCount),
		"maxMessageSizeInKilobytes":           number(d, &q.MaxMessageSizeInKilobytes),
		"requiresDuplicateDetection":          d.boolean(&q.RequiresDuplicateDetection),
		"duplicateDetectionHistoryTimeWindow": d.duration(&q.DuplicateDetectionHistoryTimeWindow),
		"requiresSession":                     d.boolean(&q.RequiresSession),
		"defaultMessageTimeToLive":            d.duration(&q.DefaultMessageTimeToLive),
		"deadLetteringOnMessageExpiration":    d.boolean(&q.DeadLetteringOnMessageExpiration),
		"maxDeliveryCount":                    deliveries(d, &q.MaxDeliveryCount),
		"enableBatchedOperations":             d.optional(&q.EnableBatchedOperations),
		"status":                              parsed(d, &q.Status, entity.ParseStatus),
		"forwardTo":                           d.text(&q.ForwardTo),
		"forwardDeadLetteredMessagesTo":       d.text(&q.ForwardDeadLetteredMessagesTo),
		"autoDeleteOnIdle":                    d.duration(&q.AutoDeleteOnIdle),
		"enablePartitioning":                  d.boolean(&q.EnablePartitioning),
		"enableExpress":                       d.boolean(&q.EnableExpress),
		"supportOrdering":                     d.optional(&q.SupportOrdering),
		"userMetadata":                        d.text(&q.UserMetadata),
		"authorizationRules":                  d.authorizationRules(&q.AuthorizationRules, "keyName"),
		"policy":                              d.raw(&q.Policy),
	})
}

func (d *decoder) topic(n node, t *Topic) {
	d.object(n, fields{
		"name":                                d.text(&t.Name),
		"defaultMessageTimeToLive":            d.duration(&t.DefaultMessageTimeToLive),
		"maxSizeInMegabytes":                  number(d, &t.MaxSizeInMegabytes),
		"maxMessageSizeInKilobytes":           number(d, &t.MaxMessageSizeInKilobytes),
		"requiresDuplicateDetection":          d.boolean(&t.RequiresDuplicateDetection),
		"duplicateDetectionHistoryTimeWindow": d.duration(&t.DuplicateDetectionHistoryTimeWindow),
		"enableBatchedOperations":             d.optional(&t.EnableBatchedOperations),
		"filteringMessagesBeforePublishing":   d.boolean(&t.FilteringMessagesBeforePublishing),
		"status":                              parsed(d, &t.Status, entity.ParseStatus),
		"supportOrdering":                     d.optional(&t.SupportOrdering),
		"autoDeleteOnIdle":                    d.duration(&t.AutoDeleteOnIdle),
		"enablePartitioning":                  d.boolean(&t.EnablePartitioning),
		"enableSubscriptionPartitioning":      d.boolean(&t.EnableSubscriptionPartitioning),
		"enableExpress":                       d.boolean(&t.EnableExpress),
		"userMetadata":                        d.text(&t.UserMetadata),
		"authorizationRules":                  d.authorizationRules(&t.AuthorizationRules, "keyName"),
		"subscriptions":                       items(d, &t.Subscriptions, d.subscription),
	})
}

func (d *decoder) subscription(n node, s *entity.Subscription) {
	d.object(n, fields{
		"name":                             d.text(&s.Name),
		"lockDuration":                     d.duration(&s.LockDuration),
		"requiresSession":                  d.boolean(&s.RequiresSession),
		"defaultMessageTimeToLive":         d.duration(&s.DefaultMessageTimeToLive),
		"deadLetteringOnMessageExpiration": d.boolean(&s.DeadLetteringOnMessageExpiration),
		"deadLetteringOnFilterEvaluationExceptions": d.optional(&s.DeadLetteringOnFilterEvaluationExceptions),
		"maxDeliveryCount":                          deliveries(d, &s.MaxDeliveryCount),
		"maxMessageCount":                           number(d, &s.MaxMessageCount),
		"enableBatchedOperations":                   d.optional(&s.EnableBatchedOperations),
		"status":                                    parsed(d, &s.Status, entity.ParseStatus),
		"forwardTo":                                 d.text(&s.ForwardTo),
		"forwardDeadLetteredMessagesTo":             d.text(&s.ForwardDeadLetteredMessagesTo),
		"autoDeleteOnIdle":                          d.duration(&s.AutoDeleteOnIdle),
		"userMetadata":                              d.text(&s.UserMetadata),
		"policy":                                    d.raw(&s.Policy),
		"rules":                                     items(d, &s.Rules, d.rule),
		"defaultRule": func(n node) {
			if n.Node != nil {
				s.DefaultRule = new(entity.Rule)
				d.rule(n, s.DefaultRule)
			}
		},
	})
}

func (d *decoder) rule(n node, r *entity.Rule) {
	d.object(n, fields{
		"name":   d.text(&r.Name),
		"filter": func(n node) { d.filter(n, &r.Filter) },
		"action": func(n node) {
			if isScalar(n.Node) { // the short form: just the SQL
				d.text(&r.Action.SQL)(n)
				return
			}
			d.object(n, fields{"sql": d.text(&r.Action.SQL), "parameters": d.values(&r.Action.Parameters)})
		},
	})
}

func (d *decoder) filter(n node, f *entity.Filter) {
	if b, ok := n.Node.(*ast.BoolNode); ok { // filter: true, filter: false
		f.Kind = entity.FalseFilter
		if b.Value {
			f.Kind = entity.TrueFilter
		}
		return
	}
	if isScalar(n.Node) { // the short form: just the SQL
		d.text(&f.SQL)(n)
		return
	}
	d.object(n, fields{
		"kind":        d.text((*string)(&f.Kind)),
		"sql":         d.text(&f.SQL),
		"parameters":  d.values(&f.Parameters),
		"correlation": func(n node) { d.correlation(n, f) },
	})
}

func isScalar(n ast.Node) bool {
	_, ok := textOf(n)
	return ok
}

func (d *decoder) correlation(n node, f *entity.Filter) {
	if n.Node == nil {
		return
	}
	f.Correlation = new(entity.Correlation)
	c := f.Correlation
	d.object(n, fields{
		"correlationId":    d.text(&c.CorrelationID),
		"messageId":        d.text(&c.MessageID),
		"to":               d.text(&c.To),
		"replyTo":          d.text(&c.ReplyTo),
		"label":            d.text(&c.Label),
		"sessionId":        d.text(&c.SessionID),
		"replyToSessionId": d.text(&c.ReplyToSessionID),
		"contentType":      d.text(&c.ContentType),
		"properties":       d.values(&c.Properties),
	})
}

func (d *decoder) hub(n node, h *entity.Hub) {
	d.object(n, fields{
		"name":                        d.text(&h.Name),
		"partitionCount":              number(d, &h.PartitionCount),
		"messageRetention":            d.duration(&h.MessageRetention),
		"retention":                   d.duration(&h.MessageRetention), // as earlier files have it
		"maxPartitionSizeInMegabytes": number(d, &h.MaxPartitionSizeInMegabytes),
		"maxMessageSizeInKilobytes":   number(d, &h.MaxMessageSizeInKilobytes),
		"status":                      parsed(d, &h.Status, entity.ParseStatus),
		"userMetadata":                d.text(&h.UserMetadata),
		"authorizationRules":          d.authorizationRules(&h.AuthorizationRules, "keyName"),
		"consumerGroups":              items(d, &h.ConsumerGroups, d.group),
	})
}

func (d *decoder) group(n node, g *entity.ConsumerGroup) {
	if isScalar(n.Node) { // the short form: just the name
		d.text(&g.Name)(n)
		return
	}
	d.object(n, fields{"name": d.text(&g.Name), "userMetadata": d.text(&g.UserMetadata)})
}

// authorizationRules reads rules whose names are under that key: Service Bus
// calls it keyName, which is too vague in the list of the whole namespace.
func (d *decoder) authorizationRules(into *entity.AuthorizationRules, nameKey string) func(node) {
	return items(d, (*[]entity.AuthorizationRule)(into), func(n node, r *entity.AuthorizationRule) {
		d.object(n, fields{
			nameKey:        d.text(&r.KeyName),
			"primaryKey":   d.text(&r.PrimaryKey),
			"secondaryKey": d.text(&r.SecondaryKey),
			"rights": func(n node) {
				d.list(n, func(item node) {
					var right entity.Right
					parsed(d, &right, entity.ParseRight)(item)
					r.Rights = append(r.Rights, right)
				})
			},
		})
	})
}
