// `npm run generate -- NAME...`: writes files that are generated from the code. Without a known name, prints the names.

import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { register } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MessageChannel } from 'node:worker_threads';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

// The generators are TypeScript, as the sources that they read.
const { port1, port2: port } = new MessageChannel();
port1.unref();
register('../../test/jest/loader.mjs', { parentURL: import.meta.url, data: { port }, transferList: [port] });

const { GENERATED, SCHEMAS } = await import('./generated-files.ts');
const names = process.argv.slice(2);
const unknown = names.filter((name) => !Object.hasOwn(GENERATED, name));
if (names.length === 0 || unknown.length > 0) {
  for (const name of unknown) console.error(`unknown: ${name}`);
  console.error(`usage: npm run generate -- NAME...\n  ${Object.keys(GENERATED).join('\n  ')}`);
  process.exitCode = 2;
} else for (const name of names) write(name, GENERATED[name]());

function write(name, files) {
  for (const [path, text] of files) {
    mkdirSync(dirname(join(ROOT, path)), { recursive: true });
    writeFileSync(join(ROOT, path), text);
  }
  if (name !== 'schemas') return;
  for (const file of readdirSync(join(ROOT, SCHEMAS)))
    if (!files.has(`${SCHEMAS}/${file}`)) rmSync(join(ROOT, SCHEMAS, file));
}
