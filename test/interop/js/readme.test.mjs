// SPDX-License-Identifier: Apache-2.0

// The README's program for the JavaScript SDK works as it stands there, but for the port.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { Broker } from "./broker.mjs";

const run = promisify(execFile);
const readme = fileURLToPath(new URL("../../../README.md", import.meta.url));
const program = fileURLToPath(new URL(`./readme-${process.pid}.tmp.mjs`, import.meta.url)); // where the SDK is installed

let broker;
before(async () => { broker = await Broker.start(["name: orders"], ["name: clicks, partitionCount: 4"]); });
after(async () => {
  rmSync(program, { force: true });
  await broker.stop();
});

// output runs the program of the README that uses a package, and returns what it prints.
async function output(sdk) {
  const blocks = [...readFileSync(readme, "utf8").matchAll(/```js\n([\s\S]*?)```/g)].map(([, text]) => text);
  const text = blocks.find((block) => block.includes(`from "${sdk}"`));
  assert.match(text, /sb:\/\/localhost;/);
  writeFileSync(program, text.replace("sb://localhost;", `sb://localhost:${broker.port};`));
  const { stdout } = await run(process.execPath, [program], { timeout: 60_000 });
  return stdout;
}

describe("the README", () => {
  it("has a program for queues that works", async () => {
    const want = ["High", "Low"].flatMap((p) => Array.from({ length: 10 }, (_, i) => `${p} ${i}\n`)).join("");
    assert.equal(await output("@azure/service-bus"), want);
  });

  it("has a program for event hubs that works", async () => {
    assert.equal(await output("@azure/event-hubs"), "0 hello\n");
  });
});
