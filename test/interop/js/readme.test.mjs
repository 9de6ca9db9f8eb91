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
before(async () => { broker = await Broker.start(["name: orders"]); });
after(async () => {
  rmSync(program, { force: true });
  await broker.stop();
});

describe("the README", () => {
  it("has a program that works", async () => {
    const [, text] = readFileSync(readme, "utf8").match(/```js\n([\s\S]*?)```/);
    assert.match(text, /sb:\/\/localhost;/);
    writeFileSync(program, text.replace("sb://localhost;", `sb://localhost:${broker.port};`));
    const { stdout } = await run(process.execPath, [program], { timeout: 60_000 });
    const want = ["High", "Low"].flatMap((p) => Array.from({ length: 10 }, (_, i) => `${p} ${i}\n`)).join("");
    assert.equal(stdout, want);
  });
});
