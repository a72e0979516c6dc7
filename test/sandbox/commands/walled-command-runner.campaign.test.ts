// Commands without a wall: their input, their output, and how they end. All are real processes.

import { createHash } from 'node:crypto';
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test } from '@jest/globals';
import ts from 'typescript';
import { startProcess } from '../../../src/sandbox/commands/command-process.js';
import type { WalledCommandRunner } from '../../../src/sandbox/commands/walled-command-runner.js';
import type { CommandRun } from '../../../src/engine/ports/effects/command-runner.js';
import { ROOT } from '../../sources.js';
import { commandsUnderTest, isAlive, NEVER, node, orderOf, ranBy, textOf, until } from './command-harness.js';

const commands = commandsUnderTest();
const runner = commands.runner();
const outcomeOf = (argv: readonly string[], more = {}) => runner.run(orderOf(argv, more), NEVER);
const run = (argv: readonly string[], more = {}) => ranBy(runner, argv, more);
const pidIn = (name: string): number => Number(readFileSync(join(commands.home, name), 'utf8'));
const isWritten = (name: string) => existsSync(join(commands.home, name)) && pidIn(name) > 0;
const sha256 = (bytes: Uint8Array | string) => createHash('sha256').update(bytes).digest('hex');

/** Runs a command that ends only by its timeout; repeats with more time until it has written `mark`. */
async function overtime(by: WalledCommandRunner, argv: readonly string[], mark: string): Promise<CommandRun> {
  for (const timeout_ms of [400, 1_600, 6_400, 25_600]) {
    const ended = await ranBy(by, argv, { timeout_ms });
    if (isWritten(mark)) return ended;
  }
  throw new Error('it never came so far');
}

afterEach(() => expect(commands.leftOver()).toEqual([]));
afterAll(() => commands.remove());

describe('how a command ends', () => {
  test.each([
    ['0', node('0'), 0],
    ['3', node('process.exit(3)'), 3],
    ['255', node('process.exit(255)'), 255],
    ['137 by SIGKILL', node('process.kill(process.pid, "SIGKILL")'), 137],
    ['139 by SIGSEGV', ['sh', '-c', 'kill -SEGV $$'], 139],
    ['127 for a missing program', ['no-such-program', 'x'], 127],
    ['127 for a path without a program', ['./none'], 127],
    ['126 for a folder', ['/usr'], 126],
    ['1 for a program that throws', node('throw new Error("x")'), 1],
  ])('with %s', async (_title, argv, exit_code) => {
    expect(await run(argv)).toMatchObject({ status: 'ran', exit_code, timed_out: false, walled: false });
  });

  test('C67: on timeout it gets a signal, and the exit code is 124, however it reacts', async () => {
    const line = `process.on("SIGTERM", () => { console.log("told"); process.exit(0) });
      setInterval(() => 0, 1e3); require("fs").writeFileSync("pid.told", String(process.pid)); console.log("on")`;
    const ended = await overtime(runner, node(line), 'pid.told');
    expect(ended).toMatchObject({ exit_code: 124, timed_out: true, truncated: false });
    expect(textOf(ended)).toBe('on\ntold\n');
  });

  test('one that ignores SIGTERM, and its child that keeps the output open, are killed after the grace time', async () => {
    const child = `process.on("SIGTERM", () => 0); setInterval(() => 0, 1e3);
      require("fs").writeFileSync("pid.child", String(process.pid))`;
    const line = `process.on("SIGTERM", () => 0); require("fs").writeFileSync("pid.own", String(process.pid));
      require("child_process").spawn(process.execPath, ["-e", process.argv[1]], { stdio: "inherit" })`;
    const ended = await overtime(commands.runner({ grace_ms: 100 }), node(line, child), 'pid.child');
    expect(ended).toMatchObject({ exit_code: 124, timed_out: true, truncated: false });
    expect([pidIn('pid.own'), pidIn('pid.child')].map((pid) => isAlive(pid))).toEqual([false, false]);
  });

  test('processes that it leaves running are killed when it ends, and its output is complete', async () => {
    const line = 'sleep 600 & echo $! > pid.left; echo done';
    const ended = await run(['sh', '-c', line]);
    expect(ended).toMatchObject({ exit_code: 0, truncated: false });
    expect(textOf(ended)).toBe('done\n');
    expect(isAlive(pidIn('pid.left'))).toBe(false);
  });

  test('one that left its group and keeps the output open is not waited for', async () => {
    const line = `const { pid } = require("child_process").spawn("sleep", ["600"], { stdio: "inherit", detached: true }).on("error", () => 0);
      require("fs").writeFileSync("pid.gone", String(pid)); console.log("done"); process.exit(0)`;
    const ended = await run(node(line));
    process.kill(pidIn('pid.gone'), 'SIGKILL');
    expect(ended).toMatchObject({ exit_code: 0, truncated: true });
    expect(textOf(ended)).toBe('done\n');
  });

  test('when it is cancelled, it has been killed before the call rejects', async () => {
    const abort = new AbortController();
    const line =
      'process.on("SIGTERM", () => 0); require("fs").writeFileSync("pid.off", String(process.pid)); setInterval(() => 0, 1e3)';
    const running = runner.run(orderOf(node(line)), abort.signal);
    const rejection = expect(running).rejects.toThrow('closing');
    await until(() => isWritten('pid.off'));
    abort.abort(new Error('closing'));
    await rejection;
    expect(isAlive(pidIn('pid.off'))).toBe(false);
  });

  test('one that is cancelled before it starts is not started', async () => {
    const order = orderOf(['true'], { case_id: 'case_unborn' });
    await expect(runner.run(order, AbortSignal.abort(new Error('closing')))).rejects.toThrow('closing');
    expect(existsSync(join(commands.root, 'case_unborn'))).toBe(false);
  });
});

describe('the output', () => {
  test('both streams arrive in the order in which they were written', async () => {
    const line = 'for (let i = 0; i < 200; i++) require("fs").writeSync(1 + i % 2, i + "\\n")';
    const expected = Array.from({ length: 200 }, (_, index) => `${index}\n`).join('');
    const ended = await run(node(line));
    expect(textOf(ended)).toBe(expected);
    expect(ended).toMatchObject({ output_sha256: sha256(expected), output_bytes: expected.length, truncated: false });
  });

  test('a script can open /dev/stdout and /dev/stderr', async () => {
    const ended = await run(['sh', '-c', 'echo a > /dev/stdout; echo b > /dev/stderr; echo c']);
    expect(textOf(ended)).toBe('a\nb\nc\n');
  });

  test('it is kept up to the limit, and counted and hashed to its end', async () => {
    const whole = Buffer.alloc(4_000, 'abcdefg');
    const line = 'process.stdout.write(Buffer.alloc(4000, "abcdefg"))';
    const at = (output_bytes_max: number) => run(node(line), { output_bytes_max });
    const known = { exit_code: 0, output_sha256: sha256(whole), output_bytes: 4_000 };
    expect(await at(4_000)).toMatchObject({ ...known, output: whole, truncated: false });
    expect(await at(3_999)).toMatchObject({ ...known, output: whole.subarray(0, 3_999), truncated: true });
    expect(await at(500)).toMatchObject({ ...known, output: whole.subarray(0, 500), truncated: true });
    const long = await run(node('process.stdout.write(Buffer.alloc(400000, "xyz"))'), { output_bytes_max: 60_000 });
    expect(long.output_sha256).toBe(sha256(Buffer.alloc(400_000, 'xyz')));
    expect([long.output_bytes, long.output.length]).toEqual([400_000, 60_000]);
  });

  test('one that prints more than eight times the limit is killed, with 137, even if it exited successfully', async () => {
    const short = ['sh', '-c', 'printf %4001d 0'];
    expect(await run(short, { output_bytes_max: 500 })).toMatchObject({ exit_code: 137, timed_out: false });
    const endless = ['sh', '-c', 'trap "" TERM; yes'];
    const ended = await run(endless, { output_bytes_max: 10_000 });
    expect(ended).toMatchObject({ exit_code: 137, timed_out: false, truncated: true });
    expect(ended.output).toEqual(Buffer.from('y\n'.repeat(5_000)));
    expect(ended.output_bytes).toBeGreaterThan(80_000);
  });

  test('of many concurrent commands, each has its own output', async () => {
    const words = Array.from({ length: 12 }, (_, index) => `word ${index}`);
    const ended = await Promise.all(
      words.map((word) => run(['sh', '-c', 'cat; echo "$1"', 'sh', word], { stdin: Buffer.from(`${word}, `) })),
    );
    expect(ended.map(textOf)).toEqual(words.map((word) => `${word}, ${word}\n`));
  });

  test('bytes that are not text arrive unchanged', async () => {
    const ended = await run(node('process.stdout.write(Buffer.from([0, 255, 10, 128]))'));
    expect([...ended.output]).toEqual([0, 255, 10, 128]);
  });
});

describe('the input', () => {
  const ENVIRONMENT = ['HOME', 'LANG', 'PATH', 'TMPDIR', 'TZ'];
  /** Variables that shells set for every child. */
  const SHELL = ['OLDPWD', 'PWD', 'SHLVL', '_'];

  test('it gets its own environment, and no variable of ours', async () => {
    process.env['TURNPIKE_CANARY'] = 'sings';
    const ended = await run(['cat', '/proc/self/environ']);
    delete process.env['TURNPIKE_CANARY'];
    const variables = new Map(
      textOf(ended)
        .split('\0')
        .filter(Boolean)
        .map((one) => one.split('=', 2) as [string, string]),
    );
    expect([...variables.keys()].filter((name) => !SHELL.includes(name)).sort()).toEqual(ENVIRONMENT);
    expect(textOf(ended)).not.toContain('sings');
    expect([variables.get('LANG'), variables.get('TZ')]).toEqual(['C.UTF-8', 'UTC']);
  });

  test('it gets a private home and temporary folder, which are removed afterwards', async () => {
    const line =
      'umask; touch "$HOME/a" "$TMPDIR/b"; stat -c %a "$HOME" "$TMPDIR" "$HOME/a"; ls -A "$HOME"; echo $HOME';
    const lines = textOf(await run(['sh', '-c', line]))
      .trim()
      .split('\n');
    expect(lines.slice(0, -1)).toEqual(['0077', '700', '700', '600', 'a']);
    expect(existsSync(lines.at(-1) ?? '/')).toBe(false);
  });

  test('folders without permissions are removed too, and no link in them is followed', async () => {
    const kept = join(commands.base, 'kept');
    writeFileSync(kept, 'kept', { mode: 0o444 });
    const line =
      'mkdir -p "$HOME/c/d"; touch "$HOME/c/d/e"; ln -s "$1" "$HOME/c/d/f"; chmod 500 "$HOME/c/d"; chmod 0 "$HOME/c"';
    expect(await run(['sh', '-c', line, 'sh', kept])).toMatchObject({ exit_code: 0 });
    expect(statSync(kept).mode & 0o777).toBe(0o444);
  });

  test('it gets no descriptor but its streams', async () => {
    const lines = textOf(await run(['find', '/proc/self/fd', '-mindepth', '1', '-printf', '%f %l\\n'])).split('\n');
    const open = lines.filter((line) => !/ (?:\/dev\/null|\/proc\/\d+\/fd|\/sandbox)$|^\d+ .*\/case_1$|^$/.test(line));
    expect(open.map((line) => line.replace(/ .*\//, ' '))).toEqual(['1 output', '2 output']);
  });

  test('descriptors that this process has inherited are found and not passed on', async () => {
    const program = join(commands.base, 'stray.mjs');
    const source = readFileSync(join(ROOT, 'src/sandbox/commands/command-environment.ts'), 'utf8');
    const { outputText } = ts.transpileModule(source, { compilerOptions: { module: ts.ModuleKind.ESNext } });
    writeFileSync(
      program,
      `${outputText}\nconsole.log(strayDescriptors().includes(40), strayDescriptors().includes(1));`,
    );
    const stdio = [...Array.from({ length: 40 }, (_, fd) => (fd === 1 ? ('pipe' as const) : ('ignore' as const))), 0];
    expect(String(spawnSync(process.execPath, [program], { stdio }).stdout)).toBe('true false\n');

    const file = openSync(join(commands.base, 'printed'), 'w');
    const start = { cwd: '/', env: { PATH: '/usr/bin:/bin' }, input: 0, output: file, strays: [40] };
    const child = startProcess({ argv: ['readlink', '/proc/self/fd/39', '/proc/self/fd/40'], ...start });
    await new Promise((ended) => child.once('exit', ended));
    expect(readFileSync(join(commands.base, 'printed'), 'utf8')).toBe('/dev/null\n');
  });

  test('it reads nothing, unless it gets input', async () => {
    const line = 'process.stdin.on("data", (chunk) => process.stdout.write(chunk)).on("end", () => console.log("end"))';
    expect(textOf(await run(node(line)))).toBe('end\n');
    const stdin = Buffer.alloc(1_000_000, 'x');
    const echoed = await run(node(line), { stdin, output_bytes_max: 2_000_000 });
    expect(Buffer.compare(echoed.output, Buffer.concat([stdin, Buffer.from('end\n')]))).toBe(0);
    // A command that does not read its input is not blocked by it.
    expect(await run(['true'], { stdin })).toMatchObject({ exit_code: 0 });
  });

  test('it gets its arguments unchanged: no shell interprets them', async () => {
    const words = [
      '; touch hurt',
      '$(touch hurt)',
      '`touch hurt`',
      ' a  b ',
      '*',
      '"',
      "'",
      '\\',
      '',
      'é\n',
      '-c',
      '$0',
      '--',
    ];
    const ended = await run(['node', '-e', 'console.log(JSON.stringify(process.argv.slice(1)))', '--', ...words]);
    expect(JSON.parse(textOf(ended))).toEqual(words);
    expect(await run(['; touch hurt'])).toMatchObject({ exit_code: 127 });
    expect(await run(['true; touch hurt'])).toMatchObject({ exit_code: 127 });
    expect(existsSync(join(commands.home, 'hurt'))).toBe(false);
  });
});

describe('the working folder', () => {
  test('is the folder of its case, or one inside it', async () => {
    mkdirSync(join(commands.home, 'in/side'), { recursive: true });
    for (const cwd of ['/sandbox/', '/sandbox/in/side', '/sandbox/in/side/']) {
      const there = join(commands.home, cwd.slice('/sandbox'.length)).replace(/\/$/, '');
      expect(textOf(await run(node('console.log(process.cwd())'), { cwd }))).toBe(`${there}\n`);
    }
  });

  test('a case without a folder gets one, with mode 0700', async () => {
    expect(await run(['true'], { case_id: 'case_new' })).toMatchObject({ exit_code: 0 });
    expect(statSync(join(commands.root, 'case_new')).mode & 0o777).toBe(0o700);
  });

  test('a folder that is missing, is not a folder, or is behind a link, is refused', async () => {
    writeFileSync(join(commands.home, 'file'), '');
    symlinkSync('/tmp', join(commands.home, 'out'));
    symlinkSync(commands.home, join(commands.home, 'in-link'));
    mkdirSync(join(commands.root, 'case_2'));
    symlinkSync(join(commands.root, 'case_2'), join(commands.root, 'case_linked'));
    const problemOf = async (cwd: string, case_id = 'case_1') => {
      const outcome = await outcomeOf(['sh', '-c', 'echo > started'], { cwd, case_id });
      return outcome.status === 'ran' ? outcome : outcome.problem;
    };
    expect(await problemOf('/sandbox/none')).toBe('CWD_NOT_FOUND');
    expect(await problemOf('/sandbox/none/below')).toBe('CWD_NOT_FOUND');
    expect(await problemOf('/sandbox/file')).toBe('CWD_NOT_A_DIRECTORY');
    for (const cwd of ['/sandbox/out', '/sandbox/out/', '/sandbox/in-link', '/sandbox/in-link/in'])
      expect(await problemOf(cwd)).toBe('CWD_REFUSED');
    for (const cwd of [
      '/sandbox',
      '/tmp',
      '',
      '/sandbox/../case_2',
      '/sandbox/./x',
      '/sandbox//',
      '/sandbox/a\0b',
      '/sandboxes/',
    ])
      expect(await problemOf(cwd)).toBe('CWD_REFUSED');
    expect(await problemOf('/sandbox/', 'case_linked')).toBe('CWD_REFUSED');
    for (const case_id of ['..', '.', '', '../root', 'a/b', 'case_1/'])
      expect(await problemOf('/sandbox/', case_id)).toBe('INVALID_ORDER');
    expect(existsSync(join(commands.root, 'case_2/started'))).toBe(false);
  });

  test('a folder that it cannot enter is refused', async () => {
    mkdirSync(join(commands.home, 'closed'));
    chmodSync(join(commands.home, 'closed'), 0);
    const outcome = await outcomeOf(['true'], { cwd: '/sandbox/closed' });
    const isRoot = process.getuid?.() === 0;
    expect(outcome).toMatchObject(isRoot ? { status: 'ran' } : { status: 'not_started', problem: 'CWD_REFUSED' });
  });
});

describe('an order that cannot be executed', () => {
  test.each([
    ['no program', { argv: [] }],
    ['a program that a shell would interpret as its option', { argv: ['-c', 'ls'] }],
    ['a NUL', { argv: ['echo', 'a\0b'] }],
    ['a timeout of 0', { timeout_ms: 0 }],
    ['an infinite timeout', { timeout_ms: Infinity }],
    ['an output limit of 0', { output_bytes_max: 0 }],
  ])('%s', async (_title, more) => {
    expect(await outcomeOf(['true'], more)).toEqual({ status: 'not_started', problem: 'INVALID_ORDER' });
  });

  test('an argument that is too large for the system is a failed start', async () => {
    const outcome = await outcomeOf(['true', 'x'.repeat(200_000)]);
    expect(outcome).toEqual({ status: 'not_started', problem: 'START_FAILED' });
  });

  test('no space for its scratch folder is a failed start', async () => {
    const outcome = await commands.runner({ scratch: '/proc' }).run(orderOf(['true']), NEVER);
    expect(outcome).toEqual({ status: 'not_started', problem: 'START_FAILED' });
  });
});
