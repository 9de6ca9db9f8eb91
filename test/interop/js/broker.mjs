// SPDX-License-Identifier: Apache-2.0

// A running broker for tests: builds the binary unless TRIAGEMQ_BINARY names
// one, starts it on a free loopback port, stops it by its process id.

import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..");

// The credentials that --dev accepts on loopback: the emulators' well-known ones.
export const keyName = "RootManageSharedAccessKey";
export const key = "SAS_KEY_VALUE";

function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

function binary(dir) {
  if (process.env.TRIAGEMQ_BINARY) return process.env.TRIAGEMQ_BINARY;
  const out = join(dir, "triagemq");
  execFileSync("go", ["build", "-o", out, "./cmd/triagemq"], { cwd: root, stdio: "inherit" });
  return out;
}

export class Broker {
  // start makes a broker with the given queues and event hubs, each a flow mapping of the
  // configuration file without its braces, such as "name: a, requiresSession: true".
  static async start(queues, hubs = []) {
    const b = new Broker();
    b.dir = mkdtempSync(join(tmpdir(), "triagemq-interop-js-"));
    b.binary = binary(b.dir);
    b.port = await freePort();
    b.config = join(b.dir, "broker.yaml");
    const list = (name, items) => (items.length ? `${name}:\n` : "") + items.map((item) => `  - {${item}}\n`).join("");
    writeFileSync(b.config, list("queues", queues) + list("hubs", hubs));
    await b.run();
    return b;
  }

  async run() {
    const log = openSync(join(this.dir, "broker.log"), "a");
    const args = ["serve", "--dev", "--data", join(this.dir, "data"), "--config", this.config, "--listen", `127.0.0.1:${this.port}`];
    this.process = spawn(this.binary, args, { stdio: ["ignore", log, log] });
    this.exited = new Promise((resolve) => this.process.once("exit", resolve));
    for (let i = 0; i < 500; i++) {
      try {
        const reply = await fetch(`http://127.0.0.1:${this.port}/readyz`);
        await reply.arrayBuffer();
        if (reply.ok) return;
      } catch {
        // not listening yet
      }
      await pause(20);
    }
    await this.kill();
    throw new Error("broker does not get ready:\n" + readFileSync(join(this.dir, "broker.log"), "utf8"));
  }

  // kill ends the process as a crash would.
  async kill() {
    this.process.kill("SIGKILL");
    await this.exited;
  }

  // terminate ends the process politely.
  async terminate() {
    this.process.kill("SIGTERM");
    const late = setTimeout(() => this.process.kill("SIGKILL"), 15_000);
    await this.exited;
    clearTimeout(late);
  }

  // stop ends the process politely and removes its data.
  async stop() {
    await this.terminate();
    rmSync(this.dir, { recursive: true, force: true });
  }

  get ca() {
    return join(this.dir, "data", "tls", "ca.pem");
  }

  connectionString(options = {}) {
    const { name = keyName, secret = key } = options;
    return `Endpoint=sb://127.0.0.1:${this.port};SharedAccessKeyName=${name};SharedAccessKey=${secret};UseDevelopmentEmulator=true`;
  }

  // The certificate is for localhost.
  secureConnectionString() {
    return `Endpoint=sb://localhost:${this.port};SharedAccessKeyName=${keyName};SharedAccessKey=${key}`;
  }
}
