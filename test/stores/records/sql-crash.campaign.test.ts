// A process that writes records is killed at any moment, against the real databases. Reported writes must have
// happened, settlements must be true, and nothing may happen twice.

import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import ts from 'typescript';
import { startPostgres } from '../../fixtures/postgres.js';
import { diskFolder } from '../../fixtures/temp-folder.js';
import { filesIn, ROOT } from '../../sources.js';
import { DONE, failedWith, NOTES, postgresUnderTest, recordsOf, sqliteUnderTest, writeOf } from './sql-harness.js';
import type { ElsewhereUnderTest } from './sql-harness.js';

const KILLS = 6;
/** After the first answer, in ms; a write takes a few milliseconds. */
const DELAY_MS_MAX = 60;
const CHILD = fileURLToPath(new URL('./sql-crash-child.mjs', import.meta.url));

const server = await startPostgres();

let built: string;

/** The current sources, for a process without jest. */
beforeAll(() => {
  built = diskFolder('sql');
  const compilerOptions = { target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true };
  const folders = ['src/stores', 'src/system', 'src/core/contract', 'src/engine/ports', 'src/names', 'src/core/ledger'];
  for (const file of ['src/core/errors.ts', ...folders.flatMap((folder) => filesIn(folder, /\.ts$/))]) {
    const path = join(built, file.replace(/\.ts$/, '.js'));
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, ts.transpileModule(readFileSync(join(ROOT, file), 'utf8'), { compilerOptions }).outputText);
  }
  writeFileSync(join(built, 'package.json'), '{"type":"module"}');
  symlinkSync(join(ROOT, 'node_modules'), join(built, 'node_modules'));
});

afterAll(async () => {
  rmSync(built, { recursive: true, force: true });
  await server?.stop();
});

/** Runs a child and kills it. @returns the numbers of the writes that it reported as done */
async function killed(url: string, run: number): Promise<readonly number[]> {
  const module = pathToFileURL(join(built, 'src/stores/records/sql-database.js')).href;
  const env = { ...process.env, TARGETS: JSON.stringify({ NOTES }) };
  const child = spawn(process.execPath, [CHILD, module, url, `${run}`], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  const begun = new Promise<void>((resolve, reject) => {
    child.stdout.on('data', (bytes: Buffer) => {
      output += bytes.toString();
      resolve();
    });
    child.once('exit', () => reject(new Error('the child ended before it wrote anything')));
  });
  const ended = new Promise((resolve) => child.once('close', resolve));
  await begun;
  await sleep(Math.random() * DELAY_MS_MAX);
  child.kill('SIGKILL');
  await ended;
  const lines = output.split('\n').slice(0, -1);
  expect(lines).toEqual(lines.map((_, n) => `${n} done`));
  return lines.map((_, n) => n);
}

/** A write of the child; a settlement uses only its key and request hash. */
const writeNo = (run: number, n: number) =>
  writeOf({ id: `${run}-${n}`, text: '' }, { idempotency_key: `${run}-${n}`, request_hash: '0'.repeat(64) });

async function crashes(records: ElsewhereUnderTest): Promise<void> {
  await records.open([NOTES]);
  const expected: string[] = [];
  for (let run = 0; run < KILLS; run += 1) {
    const reported = await killed(records.url, run);
    // The write in flight, and one that was never started.
    for (let n = 0; n < reported.length + 2; n += 1) {
      const settled = await records.database.settle(writeNo(run, n));
      if (n < reported.length) expect(settled).toEqual(DONE);
      if (n > reported.length) expect(settled).toEqual(failedWith('INTERRUPTED'));
      if (settled.status === 'done') expected.push(`${run}-${n}`);
      else expect(settled).toEqual(failedWith('INTERRUPTED'));
      // Late, or repeated: nothing happens.
      expect(await records.write(writeNo(run, n))).toEqual(settled);
    }
  }
  const found = (await recordsOf(records, { limit: 10_000 })) as readonly { readonly id: string }[];
  expect(found.map(({ id }) => id).sort()).toEqual(expected.sort());
}

describe(`D8: a process that writes records is killed ${KILLS} times`, () => {
  test('a SQLite file contains every reported write, and each effect at most once', async () => {
    const records = await sqliteUnderTest();
    await crashes(records).finally(() => records.close());
  });

  (server === null ? test.skip : test)(
    'PostgreSQL contains every reported write, and each effect at most once',
    async () => {
      const records = await postgresUnderTest(server?.url ?? '');
      await crashes(records).finally(() => records.close());
    },
  );
});
