// An OpenTelemetry collector that accepts everything, in a process of its own: its time is not that of the service.
// `startCollector` starts it; run as a program, it is the collector.

import { spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const OWN = fileURLToPath(import.meta.url);

/** @returns telemetry that sends this share of the traces to the collector, and a function that ends both */
export async function tracedBy(dist, log, ratio) {
  const child = spawn(process.execPath, [OWN], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [url] = await new Promise((resolve) => child.stdout.once('data', (text) => resolve(String(text).split('\n'))));
  const chunks = join(dist, 'chunks');
  const [sdk] = readdirSync(chunks).filter((name) => /^sdk-telemetry-.*\.js$/.test(name));
  const { sdkTelemetry } = await import(join(chunks, sdk));
  const { readOtlpSettings } = await import(
    join(dist, '../../build/compiled/src/features/telemetry/otel/otlp-settings.js')
  );
  const telemetry = sdkTelemetry({ version: 'bench', otlp: readOtlpSettings({ url, ratio }), log });
  const close = async () => {
    await telemetry.close();
    child.stdin.end();
  };
  return { telemetry, close };
}

if (process.argv[1] === OWN) {
  const server = createServer((request, response) => {
    request.resume();
    request.on('end', () => response.end());
  });
  server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
  process.stdin.resume();
  process.stdin.on('end', () => process.exit(0));
}
