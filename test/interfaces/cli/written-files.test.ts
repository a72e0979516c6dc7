// Every file with content of a ledger that a command writes can be read by its owner only: under any umask, and where a
// file with wider permissions is in its place.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { chmodSync, existsSync, lstatSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { createPrivateFile, writePrivateFile } from '../../../src/system/files/private-file.js';
import { COMMANDS } from '../../../src/interfaces/cli/turnpike-command.js';
import { finish, initialised, linesOf, tempFolder, turnpike, write, type Said } from './fake-io.js';

const SECRET = 'in confidence';
const OLD = 'of another owner\n';
const APPROVER = ['--actor', 'olga', '--role', 'ATTORNEY_ADMIN'];

let folder: string;
const run = (...argv: string[]): Promise<Said> => turnpike(folder, argv);
const at = (name: string): string => join(folder, name);

beforeAll(async () => {
  folder = await initialised();
  const stdin = [write('/sandbox/a.txt', SECRET), finish()].join('\n');
  expect(await turnpike(folder, ['run', '-', '--case', 'case-a'], { stdin })).toMatchObject({ code: 0 });
  expect(await run('ledger', 'export', 'bundle')).toMatchObject({ code: 0 });
  expect(await run('ledger', 'checkpoint', '--out', 'older')).toMatchObject({ code: 0 });
  await turnpike(folder, ['run', '-'], { stdin: finish() });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The options of commands that name a file or folder to write. Of these, a checkpoint and registrations are public. */
const OUTPUTS = ['out', 'html', 'to', 'sign'];
const PUBLIC = ['ledger checkpoint --out', 'registrations --out'];
/** An option with such a name that reads a file. */
const READ = ['policy coverage --to'];

interface Writing {
  /** Writes into `path`. */
  readonly run: (path: string) => Promise<Said>;
  /** Whether an existing file is replaced; otherwise the command fails and leaves it as it is. */
  readonly replaces: boolean;
  /** The path that is written, for a path below the folder of the command. */
  readonly target?: (path: string) => string;
}

const exportTo =
  (format: readonly string[]) =>
  async (path: string): Promise<Said> => {
    const asked = await run(
      'export',
      '--case',
      'case-a',
      '--reason',
      'r',
      '--to',
      path,
      ...format,
      '--actor',
      'ann',
      '--role',
      'ATTORNEY_ADMIN',
      '--json',
    );
    const { run_id, digest } = JSON.parse(asked.stdout) as { run_id: string; digest: string };
    return run('approve', run_id, digest, ...APPROVER);
  };
const inExports = (path: string): string => join(folder, '.turnpike/exports', path);

const WRITINGS: Readonly<Record<string, Writing>> = {
  'ledger export': { run: (path) => run('ledger', 'export', path), replaces: false },
  'ledger export --entries': { run: (path) => run('ledger', 'export', path, '--entries'), replaces: false },
  'ledger prove --out': { run: (path) => run('ledger', 'prove', '@0', '--out', path), replaces: true },
  'ledger prove --from --out': {
    run: (path) => run('ledger', 'prove', '--from', 'older', '--out', path),
    replaces: true,
  },
  'policy coverage --sign': { run: (path) => run('policy', 'coverage', '--sign', path), replaces: true },
  'inspect --html': { run: (path) => run('inspect', 'bundle', '--html', path), replaces: false },
  'export --to': { run: exportTo([]), replaces: false, target: inExports },
  'export --to --zip': { run: exportTo(['--zip']), replaces: false, target: inExports },
};

test('every command that writes a file for its caller is tested here', () => {
  const written = COMMANDS.flatMap(({ name, options }) =>
    options.filter((option) => OUTPUTS.includes(option.name)).map((option) => `${name} --${option.name}`),
  );
  const known = [...Object.keys(WRITINGS), ...PUBLIC, ...READ, 'home copy --to'];
  expect(written.filter((one) => !known.includes(one))).toEqual([]);
  expect(written.length).toBeGreaterThan(3);
});

/** The permissions of a file, or of everything in a folder. */
function modesIn(path: string): readonly number[] {
  const { mode } = lstatSync(path);
  const below = lstatSync(path).isDirectory() ? readdirSync(path).flatMap((name) => modesIn(join(path, name))) : [];
  return [mode & 0o777, ...below];
}

async function withUmask<T>(mask: number, work: () => Promise<T>): Promise<T> {
  const before = process.umask(mask);
  try {
    return await work();
  } finally {
    process.umask(before);
  }
}

describe.each(Object.entries(WRITINGS))('%s', (name, { run: writeTo, replaces, target = at }) => {
  const isSlow = target !== at || name.startsWith('inspect');
  const file = (of: string): string => `${name.replaceAll(/[^a-z]/g, '')}-${of}`;

  test.each(['000', '022'].slice(0, isSlow ? 1 : 2))(
    'writes what only the owner can read under umask %s',
    async (text) => {
      const mask = Number.parseInt(text, 8);
      const path = file(text);
      const { code, stderr } = await withUmask(mask, () => writeTo(path));
      expect([code, stderr]).toEqual([0, expect.any(String)]);
      expect(modesIn(target(path)).filter((mode) => (mode & 0o077) !== 0)).toEqual([]);
      expect(modesIn(target(path)).every((mode) => (mode & 0o600) === 0o600)).toBe(true);
    },
  );

  test('never leaves content in an existing file that others can read', async () => {
    const path = file('old');
    writeFileSync(target(path), OLD);
    chmodSync(target(path), 0o666);
    const old = await open(target(path));
    const { code } = await withUmask(0, () => writeTo(path));
    // An approval succeeds whatever becomes of the export that it starts.
    if (target === at) expect(code === 0).toBe(replaces);
    if (replaces) expect(modesIn(target(path))).toEqual([0o600]);
    else expect(readFileSync(target(path), 'utf8')).toBe(OLD);
    // Nor does a process see it that had the old file open.
    expect((await old.readFile()).toString()).toBe(OLD);
    await old.close();
  });
});

test('a checkpoint is public: it has no content, and any reader may open its file', async () => {
  await withUmask(0o022, () => run('ledger', 'checkpoint', '--out', 'public'));
  expect(modesIn(at('public'))).toEqual([0o644]);
  expect(linesOf(readFileSync(at('public'), 'utf8'))).toHaveLength(5);
});

test('an archive file, which a command writes last because it shortens the ledger, is private too', async () => {
  expect(await withUmask(0, () => run('ledger', 'archive', 'archived'))).toMatchObject({ code: 0 });
  expect(modesIn(at('archived'))).toEqual([0o600]);
});

describe('a private file', () => {
  const own = tempFolder('private');

  test('is created once, replaced where that is asked, and follows a link to the file', () => {
    const path = join(own, 'a');
    expect([createPrivateFile(path, 'one'), createPrivateFile(path, 'two')]).toEqual([true, false]);
    expect(readFileSync(path, 'utf8')).toBe('one');
    chmodSync(path, 0o666);
    writePrivateFile(path, 'three');
    expect([readFileSync(path, 'utf8'), modesIn(path)]).toEqual(['three', [0o600]]);
    expect(existsSync(join(own, 'b'))).toBe(false);
  });

  test('leaves a device as it is', () => {
    const before = lstatSync('/dev/null').mode;
    writePrivateFile('/dev/null', 'nothing');
    expect(lstatSync('/dev/null').mode).toBe(before);
  });
});
