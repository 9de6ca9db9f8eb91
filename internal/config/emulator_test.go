// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/entity"
)

const serviceBusFile = "\ufeff" + `{
  // The namespace's name is fixed.
  "UserConfig": {
    "Namespaces": [
      {
        "Name": "sbemulatorns",
        "Queues": [
          {
            "Name": "queue.1", /* a comment // in a comment */
            "Properties": {
              "DeadLetteringOnMessageExpiration": "False",
              "DefaultMessageTimeToLive": "PT1H",
              "DuplicateDetectionHistoryTimeWindow": "PT20S",
              "ForwardDeadLetteredMessagesTo": "",
              "ForwardTo": "",
              "LockDuration": "PT1M",
              "MaxDeliveryCount": "3",
              "RequiresDuplicateDetection": false,
              "RequiresSession": true,
            }
          },
          { "Name": "queue.2", "Properties": { "LockDuration": "", "MaxDeliveryCount": "" } }
        ],
        "Topics": [
          {
            "Name": "topic.1",
            "Properties": { "DefaultMessageTimeToLive": "PT1H" },
            "Subscriptions": [
              {
                "Name": "subscription.1",
                "Properties": { "MaxDeliveryCount": 3 },
                "Rules": [
                  {
                    "Name": "app-prop-filter-1",
                    "Properties": {
                      "FilterType": "Correlation",
                      "CorrelationFilter": {
                        "ContentType": "application/text",
                        "CorrelationId": "id1",
                        "Label": "subject1",
                        "MessageId": "msgid1",
                        "ReplyTo": "someQueue",
                        "ReplyToSessionId": "sessionId",
                        "SessionId": "session1",
                        "To": "xyz",
                        "Properties": { "prop1": "value//1", "MaxDeliveryCount": "3" }
                      }
                    }
                  },
                  {
                    "Name": "sql",
                    "Properties": {
                      "FilterType": "Sql",
                      "SqlFilter": { "SqlExpression": "sys.MessageId = '123456' AND userProp1 = 'value1'" },
                      "Action": { "SqlExpression": "SET sys.To = 'Entity'" },
                    },
                  },
                ]
              },
              { "Name": "subscription.2" }
            ]
          }
        ]
      }
    ],
    "Logging": { "Type": "File" }
  }
}`

func TestServiceBusEmulatorFile(t *testing.T) {
	c, err := parseEmulator("Config.json", []byte(serviceBusFile))
	if err != nil {
		t.Fatal(err)
	}
	text := func(s string) entity.Value {
		v, err := entity.NewValue(s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	c.source = source{}
	want := Config{
		Namespace: "sbemulatorns",
		Queues: []entity.Queue{
			{
				Name: "queue.1", DefaultMessageTimeToLive: entity.Duration(time.Hour), MaxDeliveryCount: 3, RequiresSession: true,
				DuplicateDetectionHistoryTimeWindow: entity.Duration(20 * time.Second), LockDuration: entity.Duration(time.Minute),
			},
			{Name: "queue.2"},
		},
		Topics: []Topic{{
			Topic: entity.Topic{Name: "topic.1", DefaultMessageTimeToLive: entity.Duration(time.Hour)},
			Subscriptions: []entity.Subscription{
				{Name: "subscription.1", MaxDeliveryCount: 3, Rules: []entity.Rule{
					{Name: "app-prop-filter-1", Filter: entity.Filter{Kind: entity.CorrelationFilter, Correlation: &entity.Correlation{
						ContentType: "application/text", CorrelationID: "id1", Label: "subject1", MessageID: "msgid1", ReplyTo: "someQueue",
						ReplyToSessionID: "sessionId", SessionID: "session1", To: "xyz",
						Properties: map[string]entity.Value{"prop1": text("value//1"), "MaxDeliveryCount": text("3")},
					}}},
					{
						Name:   "sql",
						Filter: entity.Filter{Kind: entity.SQLFilter, SQL: "sys.MessageId = '123456' AND userProp1 = 'value1'"},
						Action: entity.Action{SQL: "SET sys.To = 'Entity'"},
					},
				}},
				{Name: "subscription.2"},
			},
		}},
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("read as\n%+v, want\n%+v", c, want)
	}
}

func TestEventHubsEmulatorFile(t *testing.T) {
	c, err := parseEmulator("Config.json", []byte(`{"UserConfig": {"NamespaceConfig": [{"Type": "EventHub", "Name": "emulatorNs1", "Entities": [
		{"Name": "eh1", "PartitionCount": "2", "ConsumerGroups": [{"Name": "cg1"}, {"Name": "$default"}]},
		{"Name": "eh2", "PartitionCount": 4}]}], "LoggingConfig": {"Type": "File"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []entity.Hub{{Name: "eh1", PartitionCount: 2, ConsumerGroups: []entity.ConsumerGroup{{Name: "cg1"}}}, {Name: "eh2", PartitionCount: 4}}
	if c.Namespace != "emulatorNs1" || !reflect.DeepEqual(c.Hubs, want) {
		t.Errorf("read as %q, %+v, want emulatorNs1, %+v", c.Namespace, c.Hubs, want)
	}
}

func TestEmulatorFaults(t *testing.T) {
	for text, want := range map[string]string{
		"{\n  \"UserConfig\": }": "Config.json:2:17: not JSON",
		`{}`:                     "neither UserConfig.Namespaces",
		`{"UserConfig": [`:       "Config.json:1:",
		`{"UserConfig": {"Namespaces": [{"Queues": [{"Name": "a", "Properties": {"LockDuration": "PT1H"}}, {"Name": "A"}]}]}}`:                                           "queues[0].lockDuration: 1h is outside 5s..5m",
		`{"UserConfig": {"Namespaces": [{"Queues": [{"Name": "a", "Properties": {"LockDuration": "long"}}]}]}}`:                                                          "not a duration",
		`{"UserConfig": {"Namespaces": [{"Queues": [{"Name": "a", "Properties": {"MaxDeliveryCount": "many"}}]}]}}`:                                                      "expected a whole number of 32 bits, found a text",
		`{"UserConfig": {"NamespaceConfig": [{"Entities": [{"Name": "h", "PartitionCount": "1025"}]}]}}`:                                                                 "hubs[0].partitionCount: 1025 is outside 1..1024",
		`{"UserConfig": {"NamespaceConfig": [{"Entities": [{"Name": "h", "PartitionCount": "two"}]}]}}`:                                                                  "UserConfig.NamespaceConfig[0].Entities[0].PartitionCount: expected a whole number",
		`{"UserConfig": {"NamespaceConfig": [{"Entities": [{"Name": "h", "ConsumerGroups": [{"Name": "a"}, {"Name": "A"}, {"Name": "b/c"}]}]}]}}`:                        "hubs[0].consumerGroups[2].name: \"b/c\" has a slash",
		`{"UserConfig": {"Namespaces": [{"Topics": [{"Name": "a", "Subscriptions": [{"Name": "s", "Rules": [{"Name": "r", "Properties": {"FilterType": "Odd"}}]}]}]}]}}`: "topics[0].subscriptions[0].rules[0].filter.kind",
	} {
		_, err := parseEmulator("Config.json", []byte(text))
		if !errors.Is(err, errInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n%v, want %s", text, err, want)
		}
	}
}

func FuzzParseEmulator(f *testing.F) {
	f.Add(serviceBusFile)
	f.Add(`{"UserConfig": {"NamespaceConfig": [{"Entities": [{"PartitionCount": "2"}]}]}}`)
	f.Add(`/* // "`)
	f.Add(`{"a": "\`)
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := parseEmulator("Config.json", []byte(text)); err != nil && !errors.Is(err, errInvalid) {
			t.Fatalf("%v is not %v", err, errInvalid)
		}
	})
}

// Every value that cannot be read is reported, together with the faults of the
// others.
func TestEveryFaultOfAnEmulatorFileAtOnce(t *testing.T) {
	_, err := parseEmulator("Config.json", []byte(`{"UserConfig": {"Namespaces": [{"Name": "ns",
		"Queues": [
			{"Name": "a", "Properties": {"LockDuration": "soon", "MaxDeliveryCount": "many", "DefaultMessageTimeToLive": "PT1H"}},
			{"Name": "b", "Properties": {"LockDuration": "PT1H", "RequiresSession": 5}},
			{"Name": "a"}],
		"Topics": [{"Name": 5, "Subscriptions": [{"Name": "s", "Rules": [{"Name": "r", "Properties": {"FilterType": "Magic"}}]}]}]}]}}`))
	const ns = "Config.json: UserConfig.Namespaces[0]."
	for _, want := range []string{
		ns + "Queues[0].Properties.LockDuration: ", ns + "Queues[0].Properties.MaxDeliveryCount: ", ns + "Queues[1].Properties.RequiresSession: ",
		ns + "Topics[0].Name: ", "queues[1].lockDuration: ", "queues[2].name: ", "topics[0].subscriptions[0].rules[0].filter.kind: ",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not reported:\n%v", want, err)
		}
	}
	if faults, _ := errors.AsType[Faults](err); len(faults) != 7 {
		t.Errorf("%d faults, want 7:\n%v", len(faults), err)
	}
}
