// The real command as a shell runs it: processes, pipes, signals, exit codes.

import { afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import Database from 'better-sqlite3';
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { openTurnpike } from '../../src/host/turnpike.js';
import {
  finish,
  initialised,
  jsonLines,
  linesOf,
  outcomes,
  put,
  read,
  think,
  turnpike as inThisProcess,
  write,
  type Said,
} from '../interfaces/cli/fake-io.js';
import { diskFolder } from '../fixtures/temp-folder.js';
import { builtCommand } from '../fixtures/build.js';

const MS_MAX = 60_000;
let command: string;
let folder: string;
const children = new Set<ChildProcessWithoutNullStreams>();

beforeAll(async () => {
  command = await builtCommand(diskFolder());
}, 400_000);
beforeEach(() => {
  folder = diskFolder();
});
afterEach(() => {
  for (const child of children) child.kill('SIGKILL');
  children.clear();
});

interface Ended {
  readonly status: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A process of the command, with its stdin still open. */
class Running {
  readonly child: ChildProcessWithoutNullStreams;
  readonly ended: Promise<Ended>;
  #stdout = '';
  #stderr = '';

  /** With `fileBlocks`, no file can grow beyond so many blocks: as on a disk that is full. */
  constructor(argv: readonly string[], fileBlocks?: number) {
    const env = { PATH: process.env['PATH'] };
    const limit = fileBlocks === undefined ? '' : `ulimit -f ${fileBlocks};`;
    const args = ['-c', `${limit} exec "$@"`, 'sh', process.execPath, command, ...argv];
    this.child = spawn('sh', args, { cwd: folder, env, timeout: MS_MAX });
    children.add(this.child);
    this.child.stdout.on('data', (chunk: Buffer) => (this.#stdout += chunk.toString('utf8')));
    this.child.stderr.on('data', (chunk: Buffer) => (this.#stderr += chunk.toString('utf8')));
    this.child.stdin.on('error', () => undefined);
    this.ended = once(this.child, 'close').then((how) => {
      const [status, signal] = how as [number | null, string | null];
      children.delete(this.child);
      return { status, signal, stdout: this.#stdout, stderr: this.#stderr };
    });
  }

  say(line: string): void {
    this.child.stdin.write(`${line}\n`);
  }

  /** Resolves when there are this many response lines. @throws if the process ends before */
  async responses(count: number): Promise<void> {
    const early = this.ended.then((ended) => Promise.reject(new Error(`ended early: ${JSON.stringify(ended)}`)));
    early.catch(() => undefined);
    while (linesOf(this.#stdout).length < count) await Promise.race([once(this.child.stdout, 'data'), early]);
  }
}

const turnpike = (argv: readonly string[], stdin: string | Uint8Array = ''): Promise<Ended> => {
  const running = new Running(argv);
  running.child.stdin.end(stdin);
  return running.ended;
};
/** Runs read-only commands in this process, after they were once tested as a process. */
const here = (argv: readonly string[]): Promise<Said> => inThisProcess(folder, argv);
const sock = (): string => join(folder, '.turnpike/control.sock');

test(
  'S2-05 S2-19 S2-20 S2-22 D5 init, step, run, runs, replay and ledger verify work as a new user runs them',
  async () => {
    expect(await turnpike(['init'])).toMatchObject({ status: 0, stderr: '' });
    put(folder, 'one.json', write('/sandbox/a.txt', 'hello'));
    put(folder, 'two.json', write('/sandbox/a.sh', 'hello'));
    const step = await turnpike(['step', 'one.json', 'two.json']);
    expect(step.status).toBe(0);
    expect(outcomes(step.stdout)).toEqual(['SUCCESS', 'DENIED']);
    expect(readFileSync(join(folder, '.turnpike/sandbox/case-local/a.txt'), 'utf8')).toBe('hello');
    const run = await turnpike(['run', '-', '--json'], [read('/sandbox/a.txt'), finish()].join('\n'));
    expect(run.status).toBe(0);
    expect(jsonLines(run.stdout)).toMatchObject([
      { outcome: 'SUCCESS', result: { content: 'hello' } },
      { outcome: 'SUCCESS', result: { response: 'done' } },
      { run: { state: 'completed', reason: 'finished', counts: { SUCCESS: 2 } } },
    ]);
    const runs = await turnpike(['runs']);
    expect(runs).toMatchObject({ status: 0, stderr: '' });
    expect(runs.stdout).toMatch(/tool_gateway +denied .*extension\.not_allowed/);
    expect(await turnpike(['replay'])).toMatchObject({ status: 0, stdout: expect.stringMatching(/^ok: 2 run trees/) });
    expect(await turnpike(['ledger', 'verify'])).toMatchObject({ status: 0, stdout: expect.stringMatching(/^ok: /) });
    expect(existsSync(sock())).toBe(false);
  },
  2 * MS_MAX,
);

test(
  'S2-04 S2-20 a hostile file: every line has a response, the run completes, the ledger is intact',
  async () => {
    folder = await initialised();
    const lines: (string | Buffer)[] = [
      '{ invalid json }',
      '',
      Buffer.from([0x00, 0xff, 0xfe, 0x0d]),
      '\ufeff{}',
      'null',
      '['.repeat(100_000),
      '{"a":1,"a":2}',
      '{"__proto__":{"admin":true}}',
      `{"schema_version":"1.0.0","id":"${'x'.repeat(70_000)}"}`,
      JSON.stringify({ action: 'RUN_SHELL' }),
      '\u001b[2J\u202e',
      '1e999',
    ];
    put(folder, 'hostile.jsonl', Buffer.concat(lines.flatMap((each) => [Buffer.from(each), Buffer.from('\n')])));
    const { status, stdout, stderr } = await turnpike(['run', 'hostile.jsonl']);
    expect(status).toBe(0);
    expect(outcomes(stdout)).toEqual(lines.map(() => 'VALIDATION_ERROR'));
    expect(stderr).toMatch(/^run_\S+ completed \(end_of_input\): 12 proposals: 12 VALIDATION_ERROR\n$/);
    expect(await here(['replay'])).toMatchObject({ code: 0 });
    expect(await here(['ledger', 'verify'])).toMatchObject({ code: 0 });
  },
  MS_MAX,
);

describe('several processes on one home directory', () => {
  beforeEach(async () => {
    folder = await initialised();
  });

  test(
    'D13 a second command works through the first one while that runs, and both complete',
    async () => {
      const holder = new Running(['run', '-']);
      holder.say(write('/sandbox/a.txt', 'from the first'));
      await holder.responses(1);
      expect((statSync(sock()).mode & 0o777).toString(8)).toBe('600');
      const second = await turnpike(
        ['run', '-'],
        [read('/sandbox/a.txt'), 'x', write('/sandbox/b.sh', 'x')].join('\n'),
      );
      expect(second).toMatchObject({
        status: 0,
        stderr: expect.stringMatching(/^run_\S+ completed \(end_of_input\): 3 proposals: /),
      });
      expect(jsonLines(second.stdout)[0]).toMatchObject({ result: { content: 'from the first' } });
      holder.child.stdin.end(finish());
      expect(await holder.ended).toMatchObject({ status: 0 });
      expect(await here(['ledger', 'verify'])).toMatchObject({ code: 0 });
      expect(await here(['replay'])).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(/^ok: 2 run trees/),
      });
    },
    MS_MAX,
  );

  test(
    'D13 commands that are started at the same time all succeed',
    async () => {
      const files = [1, 2, 3, 4, 5].map((n) => put(folder, `${n}.json`, write(`/sandbox/${n}.txt`, String(n))));
      const all = await Promise.all(files.map((file) => turnpike(['step', file])));
      expect(all.map(({ status }) => status)).toEqual([0, 0, 0, 0, 0]);
      expect(all.flatMap(({ stdout }) => outcomes(stdout))).toEqual(files.map(() => 'SUCCESS'));
      expect(await here(['ledger', 'verify'])).toMatchObject({
        code: 0,
        stdout: expect.stringContaining('5 run trees'),
      });
    },
    MS_MAX,
  );

  test(
    'D3 after SIGKILL the next command recovers: the old run failed as INTERRUPTED, and its own run completes',
    async () => {
      const killed = new Running(['run', '-']);
      killed.say(write('/sandbox/a.txt', 'kept'));
      await killed.responses(1);
      killed.child.kill('SIGKILL');
      expect(await killed.ended).toMatchObject({ signal: 'SIGKILL' });
      expect(existsSync(sock())).toBe(true);
      const next = await turnpike(['run', '-'], read('/sandbox/a.txt'));
      expect(next.status).toBe(0);
      expect(next.stderr).toMatch(/^recovered 1 run tree .*: 1 agent run interrupted, 0 actions settled\n/);
      expect(jsonLines(next.stdout)[0]).toMatchObject({ result: { content: 'kept' } });
      expect(existsSync(sock())).toBe(false);
      const { stdout } = await turnpike(['runs']);
      expect(stdout).toMatch(/agent +failed .*INTERRUPTED\n/);
      expect(await here(['ledger', 'verify'])).toMatchObject({ code: 0 });
      expect(await here(['replay'])).toMatchObject({ code: 0 });
    },
    MS_MAX,
  );

  test(
    'D3 if a client is killed, only its run fails',
    async () => {
      const holder = new Running(['run', '-']);
      holder.say(think());
      await holder.responses(1);
      const client = new Running(['run', '-', '--correlation', 'cor_client']);
      client.say(think());
      await client.responses(1);
      client.child.kill('SIGKILL');
      await client.ended;
      holder.child.stdin.end(finish());
      expect(await holder.ended).toMatchObject({ status: 0 });
      const records = jsonLines<{ correlation_id: string; outcome: string }>(
        (await turnpike(['runs', '--json'])).stdout,
      );
      expect(records.map(({ correlation_id, outcome }) => `${outcome} ${correlation_id === 'cor_client'}`)).toEqual([
        'completed:finished false',
        'completed:finished false',
        expect.stringMatching(/^failed:.* true$/),
        'failed:INTERRUPTED true',
      ]);
    },
    MS_MAX,
  );

  test(
    'D3 if the owner is killed, a command that works through it reports that and exits with 1',
    async () => {
      const holder = new Running(['run', '-']);
      holder.say(think());
      await holder.responses(1);
      const client = new Running(['run', '-']);
      client.say(think());
      await client.responses(1);
      holder.child.kill('SIGKILL');
      expect(await client.ended).toMatchObject({ status: 1, stderr: expect.stringMatching(/^CLOSED: [^\n]+\n$/) });
      expect(await turnpike(['run', '-'], think())).toMatchObject({
        status: 0,
        stderr: expect.stringContaining('2 agent runs interrupted'),
      });
    },
    MS_MAX,
  );

  test.each(['SIGINT', 'SIGTERM'] as const)(
    '%s interrupts the run, reports that, and exits with 1',
    async (signal) => {
      const running = new Running(['run', '-']);
      running.say(think());
      await running.responses(1);
      running.child.kill(signal);
      expect(await running.ended).toMatchObject({
        status: 1,
        signal: null,
        stderr: expect.stringMatching(/^run_\S+ failed \(INTERRUPTED\): 1 proposal: 1 SUCCESS\n$/),
      });
      expect(existsSync(sock())).toBe(false);
    },
    MS_MAX,
  );

  test(
    'a home directory that is locked without a socket is exit code 3',
    async () => {
      const held = await openTurnpike({ home: join(folder, '.turnpike'), control: false });
      expect(await turnpike(['run', '-'], think())).toMatchObject({
        status: 3,
        stdout: '',
        stderr: expect.stringMatching(/^LEDGER_LOCKED: [^\n]+\n$/),
      });
      await held.close();
    },
    MS_MAX,
  );

  test(
    'U-04 the command reaches a service that embeds the library',
    async () => {
      const contract = join(folder, 'contract');
      const service = await openTurnpike({ home: join(folder, '.turnpike'), contract });
      const own = await service.startAgent({ case: 'case-local' });
      const run = await turnpike(['run', '-'], write('/sandbox/a.txt', 'by command'));
      expect(run).toMatchObject({ status: 0 });
      expect(await own.submit(read('/sandbox/a.txt'))).toMatchObject({ result: { content: 'by command' } });
      await service.close();
    },
    MS_MAX,
  );

  test(
    'the command ends quietly if the reader of its output is gone',
    async () => {
      await turnpike(['run', '-'], Array.from({ length: 2_000 }, think).join('\n'));
      const running = new Running(['runs', '--json']);
      running.child.stdout.destroy();
      expect(await running.ended).toMatchObject({ status: 0, stderr: '' });
      const interrupted = new Running(['run', '-']);
      interrupted.say(think());
      await interrupted.responses(1);
      interrupted.child.stdout.destroy();
      interrupted.say(think());
      interrupted.say(think());
      expect(await interrupted.ended).toMatchObject({
        status: 1,
        stderr: expect.stringMatching(/^run_\S+ failed \(INTERRUPTED\)[^\n]*\n$/),
      });
    },
    MS_MAX,
  );

  test(
    'one changed character in the database makes ledger verify exit with 1, and name the entry',
    async () => {
      await turnpike(['run', '-'], [think(), finish()].join('\n'));
      const db = new Database(join(folder, '.turnpike/ledger.db'));
      db.exec('DROP TRIGGER blocks_update');
      db.exec(`UPDATE blocks SET texts = replace(texts, 'THINK', 'THINQ') WHERE texts LIKE '%THINK%'`);
      db.close();
      expect(await turnpike(['ledger', 'verify'])).toMatchObject({
        status: 1,
        stdout: expect.stringMatching(/^@\d+ \(run_\w+#\d+\): \S+: /),
      });
      expect(await turnpike(['run', '-'], think())).toMatchObject({
        status: 3,
        stderr: expect.stringMatching(/^LEDGER_TAMPERED: [^\n]+\n$/),
      });
    },
    MS_MAX,
  );
});

test(
  'D2 if the ledger cannot be written, the last response is AUDIT_FAILURE, the exit code 3, and the next command recovers',
  async () => {
    folder = await initialised();
    const lines = Array.from({ length: 200 }, () => write('/sandbox/a.txt', 'x'.repeat(40_000)));
    put(folder, 'many.jsonl', lines.join('\n'));
    const full = new Running(['run', 'many.jsonl', '--json'], 10_000);
    const { status, stdout, stderr } = await full.ended;
    expect(status).toBe(3);
    const said = jsonLines(stdout);
    expect(said.at(-2)).toMatchObject({ error: { error_code: 'AUDIT_FAILURE' } });
    expect(said.at(-1)).toMatchObject({ run: { state: 'failed', reason: 'AUDIT_FAILURE' } });
    expect(said.length).toBeLessThan(200);
    expect(stderr).toMatch(/failed \(AUDIT_FAILURE\)/);
    expect(await turnpike(['run', '-'], think())).toMatchObject({
      status: 0,
      stderr: expect.stringMatching(/^recovered 1 run tree /),
    });
    expect(await here(['ledger', 'verify'])).toMatchObject({ code: 0 });
    expect(await here(['replay'])).toMatchObject({ code: 0 });
  },
  MS_MAX,
);

test(
  'a usage error is one line and exit code 2',
  async () => {
    expect(await turnpike(['run'])).toEqual({
      status: 2,
      signal: null,
      stdout: '',
      stderr: 'USAGE: FILE.jsonl is missing: see `turnpike help run`\n',
    });
    expect(await turnpike(['run', '-'], think())).toMatchObject({ status: 2, stdout: '' });
  },
  MS_MAX,
);
