// The read-only commands: runs, replay, ledger verify.

import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import Database from 'better-sqlite3';
import { rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import {
  copyOf,
  finish,
  initialised,
  jsonLines,
  linesOf,
  read,
  tempFolder,
  think,
  turnpike,
  write,
  type Said,
} from './fake-io.js';

interface Record_ {
  readonly run_id: string;
  readonly run_kind: string;
  readonly status: string;
}

let model: string;
let folder: string;
let root: string;
beforeAll(async () => {
  folder = await initialised();
  const input = [write('/sandbox/a.txt', 'a'), write('/sandbox/a.sh', 'x'), read('/sandbox/a.txt'), finish()];
  await turnpike(folder, ['run', '-'], { stdin: input.join('\n') });
  root = jsonLines<Record_>((await turnpike(folder, ['runs', '--json'])).stdout)[0]!.run_id;
  model = folder;
});
beforeEach(() => {
  folder = copyOf(model);
});

const look = (...argv: string[]): Promise<Said> => turnpike(folder, argv);

/** Changes the database directly. */
function tamper(sql: string): void {
  const db = new Database(join(folder, '.turnpike/ledger.db'));
  const guards = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'").pluck().all() as string[];
  for (const name of guards) db.exec(`DROP TRIGGER ${name}`);
  db.exec(sql);
  db.close();
}

/** The block that contains an entry, with all its texts and the index of the entry among them. */
interface Found {
  readonly log_index: number;
  readonly texts: readonly string[];
  readonly place: number;
}

/** Finds an entry by its type and a part of its text. */
function find(db: Database.Database, type: string, part: string): Found {
  const blocks = db.prepare('SELECT log_index, types, texts FROM blocks').all() as Record<string, string>[];
  for (const { log_index, types, texts } of blocks) {
    const lines = texts!.split('\n');
    const place = lines.findIndex((text, at) => types!.split(' ')[at] === type && text.includes(part));
    if (place >= 0) return { log_index: Number(log_index), texts: lines, place };
  }
  throw new Error(`no ${type} with ${part}`);
}

/** Changes the text of one entry in the database directly. @returns the log index of the entry */
function forge(type: string, part: string, change: (text: string) => string): number {
  const db = new Database(join(folder, '.turnpike/ledger.db'));
  const { log_index, texts, place } = find(db, type, part);
  db.exec('DROP TRIGGER blocks_update');
  const changed = texts.with(place, change(texts[place]!)).join('\n');
  db.prepare('UPDATE blocks SET texts = ? WHERE log_index = ?').run(changed, log_index);
  db.close();
  return log_index + place;
}

describe('runs', () => {
  test('shows every run of a tree below its parent, with state, time and the rule that denied it', async () => {
    const { code, stdout, stderr } = await look('runs');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const shape = linesOf(stdout).map((text) => text.replaceAll(root, 'R').replace(/ +/g, ' '));
    const time = /\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ [\d.]+ m?s/;
    expect(shape.map((text) => text.replace(time, 'T'))).toEqual([
      'R orchestrator completed T finished',
      '└─ R.1 agent completed T SANDBOX_FILES as SANDBOX_AGENT finished',
      ' ├─ R.1.1 tool_gateway completed T sandbox.write_file',
      ' │ └─ R.1.1.1 db_write completed T sandbox_files',
      ' ├─ R.1.2 tool_gateway denied T sandbox.write_file extension.not_allowed',
      ' └─ R.1.3 tool_gateway completed T sandbox.read_file',
    ]);
    const columns = linesOf(stdout).map((text) => text.search(/ (?:orchestrator|agent|tool_gateway|db_write) /));
    expect(new Set(columns).size).toBe(1);
  });

  test('colours states only on a terminal that supports colours', async () => {
    const coloured = await turnpike(folder, ['runs'], { colours: true });
    expect(coloured.stdout).toContain('\u001b[33mdenied\u001b[0m');
    expect((await look('runs')).stdout).not.toContain('\u001b');
  });

  test('--json prints the run records, one per line', async () => {
    const records = jsonLines<Record_>((await look('runs', '--json')).stdout);
    expect(records.map(({ run_id, run_kind, status }) => [run_id.replace(root, 'R'), run_kind, status])).toEqual([
      ['R', 'orchestrator', 'completed'],
      ['R.1', 'agent', 'completed'],
      ['R.1.1', 'tool_gateway', 'completed'],
      ['R.1.1.1', 'db_write', 'completed'],
      ['R.1.2', 'tool_gateway', 'denied'],
      ['R.1.3', 'tool_gateway', 'completed'],
    ]);
  });

  test('prints the newest tree last, and with --limit the last trees', async () => {
    for (let i = 0; i < 3; i += 1)
      await turnpike(folder, ['run', '-', '--correlation', `cor_${i}`], { stdin: think() });
    const correlations = async (...argv: string[]) =>
      jsonLines<{ correlation_id: string; run_kind: string }>((await look('runs', '--json', ...argv)).stdout)
        .filter(({ run_kind }) => run_kind === 'orchestrator')
        .map(({ correlation_id }) => correlation_id);
    expect((await correlations()).slice(1)).toEqual(['cor_0', 'cor_1', 'cor_2']);
    expect(await correlations('--limit', '2')).toEqual(['cor_1', 'cor_2']);
  });

  test('prints the first children of a run and the number of the others; all of them with --all', async () => {
    const many = Array.from({ length: 25 }, () => read('/sandbox/a.txt')).join('\n');
    await turnpike(folder, ['run', '-'], { stdin: many });
    const { stdout } = await look('runs', '--limit', '1');
    expect(linesOf(stdout)).toHaveLength(23);
    expect(linesOf(stdout).at(-1)).toBe('   └─ … 5 more: 5 completed');
    expect(linesOf((await look('runs', '--limit', '1', '--all')).stdout)).toHaveLength(27);
  });

  test('prints the record and events of one run, and the steps of an agent run', async () => {
    const { code, stdout } = await look('runs', `${root}.1`);
    expect(code).toBe(0);
    expect(stdout).toContain('state        completed:finished\n');
    const [, events = '', steps = ''] = stdout.split(/\n(?:events|steps)\n/);
    const plain = (text: string) => linesOf(text).map((each) => each.trim().split(/ {2,}/).slice(2).join(' | '));
    expect(plain(events)).toEqual([
      expect.stringContaining('authz_decision | allow | '),
      'system | success | running',
      'system | success | completed:finished',
    ]);
    expect(plain(steps)).toEqual([
      expect.stringMatching(/^WRITE_FILE \/sandbox\/a\.txt \| SUCCESS/),
      expect.stringMatching(
        /^WRITE_FILE \/sandbox\/a\.sh \| DENIED \| POLICY_VIOLATION EXTENSION \| extension.not_allowed \| \S+\.1\.2$/,
      ),
      expect.stringMatching(/^READ_FILE \/sandbox\/a\.txt \| SUCCESS/),
      'FINISH | SUCCESS',
    ]);
  });

  test('an unknown run is one line and exit code 1', async () => {
    const { code, stderr } = await look('runs', 'run_\u001b[2Jnone');
    expect(code).toBe(1);
    expect(stderr).toBe('RUN_UNKNOWN: this ledger has no run run_\\u001b[2Jnone\n');
  });

  test('escapes names chosen by an agent for a terminal', async () => {
    const name = '\u001b]0;owned\u0007\u202egro.live\u200d';
    // A file cannot have such a name; a visible format character is printed as its number.
    await turnpike(folder, ['run', '-', '--actor', name], { stdin: write('/sandbox/\u0600fdp.exe', 'x') });
    const { stdout: list } = await look('runs', '--json');
    const agent = jsonLines<Record_ & { actor: { actor_id: string } }>(list).findLast(
      (run) => run.run_kind === 'agent',
    )!;
    expect(agent.actor.actor_id).toBe(name);
    const { stdout } = await look('runs', agent.run_id);
    for (const text of [list, stdout, (await look('runs')).stdout]) expect(text).not.toMatch(/[^\P{C}\n]/u);
    expect(stdout).toContain('/sandbox/\\u0600fdp.exe');
    expect(stdout).toContain('agent \\u001b]0;owned\\u0007\\u202egro.live\\u200d\n');
  });

  test('needs no lock: reads while another command runs', async () => {
    const stdin = new PassThrough();
    let running!: Promise<Said>;
    await new Promise<void>((resolve) => {
      running = turnpike(folder, ['run', '-'], { stdin, onStdout: () => resolve() });
      stdin.write(`${write('/sandbox/b.txt', 'b')}\n`);
    });
    const { stdout } = await look('runs', '--limit', '1');
    expect(stdout).toMatch(/agent +running/);
    expect(await look('ledger', 'verify')).toMatchObject({ code: 0 });
    expect(await look('replay')).toMatchObject({ code: 0 });
    stdin.end();
    expect(await running).toMatchObject({ code: 0 });
  });

  test('an empty ledger is not an error', async () => {
    const fresh = await initialised();
    expect(await turnpike(fresh, ['runs'])).toMatchObject({
      code: 0,
      stdout: '',
      stderr: expect.stringMatching(/no runs/),
    });
    const nothing = { code: 4, stdout: expect.stringMatching(/^nothing was replayed/) };
    expect(await turnpike(fresh, ['replay'])).toMatchObject(nothing);
    expect(await turnpike(fresh, ['ledger', 'verify'])).toMatchObject({ code: 0 });
  });

  test('ends quietly if the reader of its output is gone', async () => {
    expect(await turnpike(folder, ['runs', '--json'], { readerLeavesAfter: 2 })).toMatchObject({
      code: 0,
      stderr: '',
      log: [],
    });
  });

  test('reports an invalid entry as tampering', async () => {
    forge('run_created', 'db_write', () => '{}');
    expect(await look('runs')).toMatchObject({
      code: 3,
      stderr: expect.stringMatching(/^LEDGER_TAMPERED: @\d+ is not a valid entry/),
    });
  });

  test.each([['runs'], ['replay'], ['ledger', 'verify']])(
    '%s %s of a missing home directory is a usage error',
    async (...argv) => {
      expect(await turnpike(tempFolder(), argv)).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(/^USAGE: .*`turnpike init`\n$/),
      });
    },
  );
});

describe('replay', () => {
  test('prints what was checked, for the whole ledger or one tree', async () => {
    await turnpike(folder, ['run', '-'], { stdin: think() });
    const all = await look('replay');
    expect(all).toMatchObject({ code: 0, stderr: '' });
    expect(all.stdout).toMatch(/^ok: 2 run trees, \d+ entries, \d+ inputs, 5 steps, 5 responses: every state/);
    const one = await look('replay', `${root}.1.1`);
    expect(one.stdout).toMatch(/^ok: 1 run tree, \d+ entries, \d+ inputs, 4 steps, 4 responses:/);
    expect(JSON.parse((await look('replay', '--json')).stdout)).toMatchObject({ ok: true, trees: 2, difference: null });
  });

  test('an unknown run is exit code 1', async () => {
    expect(await look('replay', 'run_none')).toMatchObject({ code: 1, stderr: expect.stringMatching(/^RUN_UNKNOWN/) });
  });

  test('prints the first entry that differs from the replay, expected and found', async () => {
    const index = forge('step_trace', 'POLICY_VIOLATION', (text) => text.replaceAll('"DENIED"', '"SUCCESS"'));
    const { code, stdout } = await look('replay');
    expect(code).toBe(1);
    const [first, expected, found] = linesOf(stdout);
    expect(first).toMatch(new RegExp(`^@${index} \\(${root}#\\d+\\): entry.differs$`));
    expect(expected).toMatch(/^ {2}expected: .*"outcome":"DENIED"/);
    expect(found).toMatch(/^ {2}found: {4}.*"outcome":"SUCCESS"/);
    expect(Math.max(...linesOf(stdout).map(({ length }) => length))).toBeLessThan(400);
    expect(JSON.parse((await look('replay', '--json')).stdout)).toMatchObject({ difference: { log_index: index } });
  });
});

describe('ledger verify', () => {
  test('prints how much was checked, and the root', async () => {
    const { code, stdout, stderr } = await look('ledger', 'verify');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^ok: \d+ entries of 1 run tree, root [0-9a-f]{64}\n$/);
  });

  test('names the changed entry, and exits with 1', async () => {
    const index = forge('audit_event', 'extension.not_allowed', (text) => text.replaceAll('"deny"', '"allow"'));
    const { code, stdout } = await look('ledger', 'verify');
    expect(code).toBe(1);
    expect(linesOf(stdout)[0]).toMatch(new RegExp(`^@${index} \\(${root}#\\d+\\): \\S+: `));
    const { problems } = JSON.parse((await look('ledger', 'verify', '--json')).stdout) as { problems: unknown[] };
    expect(problems[0]).toMatchObject({ log_index: index, tree_id: root });
  });

  test('escapes text of an entry for a terminal', async () => {
    tamper(`UPDATE blocks SET texts = '\u001b[2J\u202e' || texts, types = '\u001b[31m ' || types WHERE log_index > 0`);
    const { code, stdout } = await look('ledger', 'verify');
    expect(code).toBe(1);
    expect(stdout).not.toMatch(/[^\P{C}\n]/u);
  });

  test('detects a truncated ledger with the head file', async () => {
    tamper(`DELETE FROM blocks WHERE log_index > 20`);
    const { code, stdout } = await look('ledger', 'verify');
    expect(code).toBe(1);
    expect(stdout).toContain('head.below');
  });

  test('reports a missing or damaged head file', async () => {
    const head = join(folder, '.turnpike/ledger.head');
    writeFileSync(head, 'x');
    expect(await look('ledger', 'verify')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^LEDGER_TAMPERED: /),
    });
    rmSync(head);
    expect(await look('ledger', 'verify')).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('head file is missing'),
    });
    expect(JSON.parse((await look('ledger', 'verify', '--json')).stdout)).toMatchObject({ ok: false });
  });

  test('reports a file that is not a ledger', async () => {
    truncateSync(join(folder, '.turnpike/ledger.db'), 4_096);
    expect(await look('ledger', 'verify')).toMatchObject({ code: 1, stderr: expect.stringMatching(/^LEDGER_\w+: /) });
  });
});

test('a command that writes does nothing on a broken ledger, and exits with 3', async () => {
  tamper(`DELETE FROM blocks WHERE log_index > 20`);
  const { code, stdout, stderr } = await turnpike(folder, ['run', '-'], { stdin: think() });
  expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
  expect(stderr).toMatch(/^LEDGER_\w+: [^\n]+\n$/);
});
