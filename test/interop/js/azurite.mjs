// SPDX-License-Identifier: Apache-2.0

// Runs the blob service of Azurite in memory, on a free loopback port, until it is
// killed or its standard input ends. Its first line of output is the connection string.
// The suites of all languages start it in this way.

const account = "devstoreaccount1"; // the emulator's well-known account and key
const key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

// Loose: the store for Python sends headers that Azurite does not know.
process.argv.push("--blobHost", "127.0.0.1", "--blobPort", "0", "--inMemoryPersistence", "--disableTelemetry", "--skipApiVersionCheck", "--loose", "--silent");
process.stdin.resume().on("end", () => process.exit());

const print = console.log;
console.log = (text) => {
  const address = /listens on (http\S+)/.exec(text)?.[1];
  if (address) print(`DefaultEndpointsProtocol=http;AccountName=${account};AccountKey=${key};BlobEndpoint=${address}/${account};`);
};
await import("azurite/dist/src/blob/main.js");
