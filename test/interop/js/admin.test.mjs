// SPDX-License-Identifier: Apache-2.0

// What users of ServiceBusAdministrationClient do, against the real broker, over
// TLS on the port that serves everything else.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { promisify } from "node:util";
import { ServiceBusAdministrationClient, ServiceBusClient } from "@azure/service-bus";
import { Broker } from "./broker.mjs";

const forever = "P10675199DT2H48M5.4775807S";

let broker, admin;
before(async () => {
  broker = await Broker.start(["name: configured"]);
  admin = connect(broker.secureConnectionString());
});
after(async () => { await broker.stop(); });

// connect makes a client that trusts the broker's own CA and shows the first error.
function connect(connectionString) {
  return new ServiceBusAdministrationClient(connectionString, {
    tlsOptions: { ca: readFileSync(broker.ca) },
    retryOptions: { maxRetries: 0 },
  });
}

const refused = (code, statusCode, text = "") => (err) => {
  assert.equal(err.code, code, err.message);
  assert.equal(err.statusCode, statusCode, err.message);
  assert.ok(err.message.includes(text), err.message);
  return true;
};

// properties are those of an answer that were asked for.
const properties = (answer, wanted) => Object.fromEntries(Object.keys(wanted).map((key) => [key, answer[key]]));

async function all(pages) {
  const out = [];
  for await (const item of pages) out.push(item);
  return out;
}

describe("administration", () => {
  it("creates, gets, updates and deletes queues", async () => {
    const wanted = {
      lockDuration: "PT45S", maxSizeInMegabytes: 2048, requiresDuplicateDetection: true, requiresSession: true,
      defaultMessageTimeToLive: "P2D", deadLetteringOnMessageExpiration: true, duplicateDetectionHistoryTimeWindow: "PT2H",
      maxDeliveryCount: 7, enableBatchedOperations: false, status: "ReceiveDisabled", autoDeleteOnIdle: "PT10M",
      enablePartitioning: false, userMetadata: "for <tests> & people", maxMessageSizeInKilobytes: 512,
      authorizationRules: [
        { claimType: "SharedAccessKey", accessRights: ["Manage", "Send", "Listen"], keyName: "all", primaryKey: "cA==", secondaryKey: "cw==" },
        { claimType: "SharedAccessKey", accessRights: ["Send"], keyName: "some", primaryKey: "cQ==", secondaryKey: "dA==" },
      ],
    };
    const made = await admin.createQueue("js/queue", wanted);
    assert.equal(made.name, "js/queue");
    assert.deepEqual(properties(made, wanted), wanted);
    assert.equal(made.availabilityStatus, "Available");
    const got = await admin.getQueue("js/queue");
    assert.deepEqual(properties(got, wanted), wanted);
    await assert.rejects(admin.createQueue("js/queue"), refused("MessageEntityAlreadyExistsError", 409));

    got.maxDeliveryCount = 3;
    got.status = "Active";
    got.defaultMessageTimeToLive = forever;
    const changed = await admin.updateQueue(got);
    assert.deepEqual([changed.maxDeliveryCount, changed.status, changed.defaultMessageTimeToLive], [3, "Active", forever]);
    got.requiresSession = false;
    await assert.rejects(admin.updateQueue(got),
      refused("ServiceError", 400, "The value for the RequiresSession property of an existing Queue cannot be changed"));

    assert.equal(await admin.queueExists("js/queue"), true);
    await admin.deleteQueue("js/queue");
    assert.equal(await admin.queueExists("js/queue"), false);
    await assert.rejects(admin.getQueue("js/queue"), refused("MessageEntityNotFoundError", 404));
    await assert.rejects(admin.deleteQueue("js/queue"), refused("MessageEntityNotFoundError", 404));
    await assert.rejects(admin.createQueue("js-bad", { lockDuration: "PT1H" }), refused("ServiceError", 400, "lockDuration"));
  });

  it("forwards to a name and echoes it as a URL", async () => {
    await admin.createQueue("js-target");
    const q = await admin.createQueue("js-source", { forwardTo: "js-target" });
    assert.match(q.forwardTo, /\/js-target$/);
    const client = new ServiceBusClient(broker.connectionString());
    try {
      await client.createSender("js-source").sendMessages({ body: "on its way" });
      const [m] = await client.createReceiver("js-target").receiveMessages(1, { maxWaitTimeInMs: 8000 });
      assert.equal(m?.body, "on its way");
    } finally {
      await client.close();
    }
  });

  it("creates, gets, updates and deletes topics and subscriptions", async () => {
    const topic = await admin.createTopic("js/topic", { userMetadata: "mine", defaultMessageTimeToLive: "PT3H", supportOrdering: true });
    assert.equal(topic.name, "js/topic");
    assert.deepEqual([topic.userMetadata, topic.defaultMessageTimeToLive, topic.autoDeleteOnIdle], ["mine", "PT3H", forever]);
    topic.userMetadata = "yours";
    assert.equal((await admin.updateTopic(topic)).userMetadata, "yours");

    const wanted = {
      lockDuration: "PT20S", requiresSession: true, maxDeliveryCount: 4, deadLetteringOnMessageExpiration: true,
      deadLetteringOnFilterEvaluationExceptions: false, userMetadata: "hers", autoDeleteOnIdle: "PT1H",
    };
    const sub = await admin.createSubscription("js/topic", "sub", {
      ...wanted, defaultRuleOptions: { name: "first", filter: { sqlExpression: "Priority = 'High'" } },
    });
    assert.deepEqual([sub.topicName, sub.subscriptionName], ["js/topic", "sub"]);
    assert.deepEqual(properties(sub, wanted), wanted);
    assert.equal((await admin.getRule("js/topic", "sub", "first")).filter.sqlExpression, "Priority = 'High'");
    sub.maxDeliveryCount = 9;
    assert.equal((await admin.updateSubscription(sub)).maxDeliveryCount, 9);
    sub.requiresSession = false;
    await assert.rejects(admin.updateSubscription(sub),
      refused("ServiceError", 400, "The value for the RequiresSession property of an existing Subscription cannot be changed"));
    await assert.rejects(admin.createSubscription("js/topic", "sub"), refused("MessageEntityAlreadyExistsError", 409));
    await assert.rejects(admin.getSubscription("js/topic", "none"), refused("MessageEntityNotFoundError", 404));
    await admin.deleteSubscription("js/topic", "sub");
    await admin.deleteTopic("js/topic");
    assert.equal(await admin.topicExists("js/topic"), false);
  });

  it("keeps every kind of filter and action", async () => {
    await admin.createTopic("js-rules");
    await admin.createSubscription("js-rules", "s");
    const parameters = { "@text": "a<b", "@number": 7, "@flag": true, "@at": new Date("2026-03-04T05:06:07Z") };
    const rules = {
      sql: { filter: { sqlExpression: "color = @text AND size > @number", sqlParameters: parameters } },
      action: {
        filter: { sqlExpression: "1=1" },
        action: { sqlExpression: "SET a = @text; REMOVE b", sqlParameters: parameters },
      },
      correlation: {
        filter: {
          correlationId: "c", subject: "s", to: "t", replyTo: "r", replyToSessionId: "rs", sessionId: "se", messageId: "m",
          contentType: "text/plain", applicationProperties: { tenant: "contoso", vip: true, size: 3 },
        },
      },
      one: { filter: { applicationProperties: { only: "this" } } },
    };
    for (const [name, { filter, action }] of Object.entries(rules)) {
      await admin.createRule("js-rules", "s", name, filter, action);
      const got = await admin.getRule("js-rules", "s", name);
      assert.equal(got.name, name);
      assert.deepEqual(properties(got.filter, filter), filter);
      if (action) assert.deepEqual(properties(got.action, action), action);
      else assert.equal(got.action.sqlExpression, undefined);
    }
    assert.deepEqual((await all(admin.listRules("js-rules", "s"))).map((r) => r.name), ["$Default", ...Object.keys(rules).sort()]);
    assert.equal((await admin.getRule("js-rules", "s", "$Default")).filter.sqlExpression, "1=1");

    const rule = await admin.getRule("js-rules", "s", "sql");
    rule.filter = { sqlExpression: "x = 1" };
    assert.equal((await admin.updateRule("js-rules", "s", rule)).filter.sqlExpression, "x = 1");
    await admin.deleteRule("js-rules", "s", "sql");
    assert.equal(await admin.ruleExists("js-rules", "s", "sql"), false);
    await assert.rejects(admin.createRule("js-rules", "s", "one", { sqlExpression: "1=1" }), refused("MessageEntityAlreadyExistsError", 409));
    await assert.rejects(admin.createRule("js-rules", "s", "bad", { sqlExpression: "a = " }), refused("ServiceError", 400));
  });

  it("lists by pages", async () => {
    await admin.createTopic("js-pages");
    const names = ["s0", "s1", "s2", "s3", "s4", "s5", "s6"];
    for (const name of names) await admin.createSubscription("js-pages", name);
    for (const maxPageSize of [2, 3, 7, 100]) {
      const pages = [];
      for await (const page of admin.listSubscriptions("js-pages").byPage({ maxPageSize })) pages.push(page.map((s) => s.subscriptionName));
      assert.deepEqual(pages.flat(), names);
      assert.equal(pages.filter((p) => p.length > 0).length, Math.ceil(names.length / maxPageSize));
    }
    assert.ok((await all(admin.listQueues())).some((q) => q.name === "configured"));
    assert.ok((await all(admin.listTopics())).some((t) => t.name === "js-pages"));
    assert.equal((await all(admin.listSubscriptionsRuntimeProperties("js-pages"))).length, names.length);
  });

  it("counts messages by state", async () => {
    await admin.createQueue("js-counts");
    const fresh = await admin.getQueueRuntimeProperties("js-counts");
    assert.deepEqual([fresh.totalMessageCount, fresh.sizeInBytes], [0, 0]);
    const client = new ServiceBusClient(broker.connectionString());
    try {
      const sender = client.createSender("js-counts");
      await sender.sendMessages([{ body: "ready" }, { body: "locked" }, { body: "dead" }]);
      await sender.scheduleMessages({ body: "later" }, new Date(Date.now() + 3_600_000));
      const receiver = client.createReceiver("js-counts");
      const [first] = await receiver.receiveMessages(2, { maxWaitTimeInMs: 8000 });
      await receiver.deadLetterMessage(first);
      const full = await admin.getQueueRuntimeProperties("js-counts");
      assert.deepEqual(
        [full.activeMessageCount, full.deadLetterMessageCount, full.scheduledMessageCount, full.totalMessageCount], [2, 1, 1, 4]);
      assert.ok(full.sizeInBytes > 0 && full.accessedAt >= full.createdAt);

      await admin.createTopic("js-counts-topic");
      await admin.createSubscription("js-counts-topic", "s");
      await client.createSender("js-counts-topic").sendMessages({ body: "now" });
      await client.createSender("js-counts-topic").scheduleMessages({ body: "later" }, new Date(Date.now() + 3_600_000));
      const topic = await admin.getTopicRuntimeProperties("js-counts-topic");
      assert.deepEqual([topic.scheduledMessageCount, topic.subscriptionCount], [1, 1]);
      const sub = await admin.getSubscriptionRuntimeProperties("js-counts-topic", "s");
      assert.deepEqual([sub.activeMessageCount, sub.totalMessageCount], [1, 1]);
    } finally {
      await client.close();
    }
  });

  // Rules are made over AMQP here; the text says what is wrong, and names no packages.
  it("says what is wrong with a rule", async () => {
    await admin.createTopic("js-bad-rules");
    await admin.createSubscription("js-bad-rules", "s");
    const client = new ServiceBusClient(broker.connectionString(), { retryOptions: { maxRetries: 0 } });
    try {
      const rules = client.createRuleManager("js-bad-rules", "s");
      await assert.rejects(rules.createRule("bad", { sqlExpression: "a =" }), (err) => {
        assert.match(err.message, /1:4: found the end of the text/);
        assert.doesNotMatch(err.message, /(broker|filter|shard|queue): /);
        return true;
      });
      await assert.rejects(rules.deleteRule("none"), (err) => {
        assert.doesNotMatch(err.message, /(broker|filter|shard|queue): /);
        return true;
      });
    } finally {
      await client.close();
    }
  });

  it("tells the namespace's properties", async () => {
    const ns = await admin.getNamespaceProperties();
    assert.equal(ns.messagingSku, "Standard");
    assert.ok(ns.name && ns.createdAt instanceof Date && !Number.isNaN(ns.createdAt.valueOf()));
  });

  it("refuses a wrong key", async () => {
    const outsider = connect(broker.secureConnectionString().replace("SAS_KEY_VALUE", "another"));
    await assert.rejects(outsider.getQueue("configured"), refused("UnauthorizedRequestError", 401, "InvalidSignature"));
  });

  it("needs no option when the CA is trusted", async () => {
    const program = `
      import { ServiceBusAdministrationClient } from "@azure/service-bus";
      const q = await new ServiceBusAdministrationClient(process.argv[1]).getQueue("configured");
      console.log(q.name);`;
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program, broker.secureConnectionString()],
      { cwd: import.meta.dirname, env: { ...process.env, NODE_EXTRA_CA_CERTS: broker.ca } });
    assert.equal(stdout.trim(), "configured");
  });
});
