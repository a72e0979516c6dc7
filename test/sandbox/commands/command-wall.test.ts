// Commands behind a wall: what they can access, and what is left of them. All are real processes behind a real bwrap.

import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test } from '@jest/globals';
import { wallViewOf, wallArguments } from '../../../src/sandbox/commands/bubblewrap.js';
import { canWall, commandsUnderTest, NEVER, node, orderOf, ranBy, textOf, until } from './command-harness.js';

const hasWall = await canWall();
const commands = commandsUnderTest();
const walled = commands.runner({ wall: 'required' });
const open = commands.runner();
const run = (argv: readonly string[], more = {}) => ranBy(walled, argv, more);
const at = (...names: readonly string[]) => join(commands.base, ...names);

/** Number of processes of this machine with this word in their command line. */
const processesWith = (word: string): number =>
  readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes(word);
    } catch {
      return false;
    }
  }).length;

/** Prints for each path the result of reading it: its content, its names, or the error. */
const READ = `const fs = require("fs"); for (const path of process.argv.slice(1)) {
  try { console.log(fs.statSync(path).isDirectory() ? fs.readdirSync(path).sort().join() : fs.readFileSync(path, "utf8")) }
  catch (error) { console.log(error.code) } }`;
const readBy = async (runner: typeof walled, paths: readonly string[], more = {}) =>
  textOf(await ranBy(runner, node(READ, ...paths), more))
    .split('\n')
    .slice(0, -1);

const servers: Server[] = [];
async function serverAt(address: string | number): Promise<Server> {
  const server = createServer((socket) => socket.on('error', () => undefined).end('hello'));
  servers.push(server);
  await new Promise<void>((ready) =>
    typeof address === 'string' ? server.listen(address, ready) : server.listen(address, '127.0.0.1', ready),
  );
  return server;
}

afterEach(() => expect(commands.leftOver()).toEqual([]));
afterAll(() => {
  for (const server of servers) server.close();
  commands.remove();
});

(hasWall ? describe : describe.skip)('behind a wall', () => {
  test('a command ends as it does without a wall', async () => {
    expect(await run(node('process.exit(3)'))).toMatchObject({ exit_code: 3, timed_out: false, walled: true });
    expect(await run(['no-such-program'])).toMatchObject({ exit_code: 127 });
    expect(await run(['/usr'])).toMatchObject({ exit_code: 126 });
    expect(await run(['sh', '-c', 'kill -KILL $$'])).toMatchObject({ exit_code: 137 });
    const printed = await run(['sh', '-c', 'echo a; echo b > /dev/stderr; cat; echo c >&2'], {
      stdin: Buffer.from('in\n'),
    });
    expect(textOf(printed)).toBe('a\nb\nin\nc\n');
  });

  test('it runs in its folder, with its own environment', async () => {
    mkdirSync(join(commands.home, 'in'), { recursive: true });
    process.env['TURNPIKE_CANARY'] = 'sings';
    const ended = await run(['sh', '-c', 'pwd; umask; echo $HOME $TMPDIR; cat /proc/self/environ /proc/1/environ'], {
      cwd: '/sandbox/in',
    });
    delete process.env['TURNPIKE_CANARY'];
    expect(textOf(ended).split('\n').slice(0, 3)).toEqual(['/sandbox/in', '0077', '/home /tmp']);
    expect(textOf(ended)).not.toContain('sings');
  });

  test('there is no network, not even to this machine', async () => {
    const { port } = (await serverAt(0)).address() as AddressInfo;
    const line = `require("net").connect(process.argv[1], "127.0.0.1").on("data", String).on("error", (error) => console.log(error.code)).on("close", () => console.log("over"))`;
    expect(textOf(await ranBy(open, node(line, String(port))))).toBe('over\n');
    expect(textOf(await run(node(line, String(port))))).toBe('ECONNREFUSED\nover\n');
    const outside = 'console.log(Object.keys(require("os").networkInterfaces()).join())';
    expect(textOf(await run(node(outside)))).toBe('lo\n');
  });

  test('it sees its case and programs, and nothing else of this machine', async () => {
    mkdirSync(at('root', 'case_2'));
    writeFileSync(at('root', 'case_2', 'other'), 'another case');
    writeFileSync(join(commands.home, 'own'), 'own case');
    await serverAt(at('socket'));
    const line =
      'require("net").connect(process.argv[1]).on("error", (error) => console.log(error.code)).on("connect", () => process.exit())';
    expect(textOf(await ranBy(open, node(line, at('socket'))))).toBe('');
    expect(textOf(await run(node(line, at('socket'))))).toBe('ENOENT\n');

    const paths = [
      '/sandbox/own',
      at('root', 'case_2', 'other'),
      commands.root,
      commands.base,
      '/root',
      '/home',
      '/tmp',
      '/var',
      '/run',
    ];
    expect(await readBy(open, paths.slice(1, 2))).toEqual(['another case']);
    const [own, ...others] = await readBy(walled, paths);
    expect(own).toBe('own case');
    // The folder of Node is visible, wherever it is.
    const nodeBelow = (folder: string): string =>
      process.execPath.startsWith(`${folder}/`) ? (process.execPath.split('/')[2] ?? '') : '';
    const folders = [nodeBelow('/home'), nodeBelow('/tmp')];
    expect(others).toEqual(['ENOENT', 'ENOENT', 'ENOENT', 'ENOENT', ...folders, 'ENOENT', 'ENOENT']);
    expect(await readBy(walled, ['/etc/passwd'])).toContain(readFileSync('/etc/passwd', 'utf8').split('\n')[0]);
    // The first process of the wall, the program and its reader.
    const pids = textOf(await run(['sh', '-c', 'ls /proc | grep -c "^[0-9]"']));
    expect(Number(pids)).toBeLessThanOrEqual(5);
  });

  test('it can write in its case, its home and its temporary folder, and nowhere else', async () => {
    // Only opened: if the wall had a hole, no file of this machine should change.
    const line = `for (const path of process.argv.slice(1)) { const fs = require("fs");
      try { fs.closeSync(fs.openSync(path, fs.existsSync(path) ? "r+" : "w")); console.log("open") }
      catch (error) { console.log(error.code) } }`;
    const own = ['/sandbox/written', '/home/written', '/tmp/written'];
    const made = ['/turnpike-written', '/etc/turnpike-written', '/usr/turnpike-written', '/usr/bin/turnpike-written'];
    const others = ['/etc/passwd', '/proc/self/comm', '/proc/sys/kernel/core_pattern', '/proc/sys/kernel/hostname'];
    const opened = textOf(await run(node(line, ...own, ...made, ...others))).split('\n');
    expect(opened.slice(0, 3)).toEqual(['open', 'open', 'open']);
    expect(opened.slice(3, -1).filter((code) => !['EROFS', 'EACCES'].includes(code))).toEqual([]);
    expect(existsSync(join(commands.home, 'written'))).toBe(true);
    const kernel = ['sh', '-c', 'find /proc -writable -type f 2> /dev/null'];
    expect(textOf(await run(kernel))).toBe('');
  });

  test('shown folders can be read, and hidden folders in them cannot, whatever the command tries', async () => {
    for (const folder of ['shown', 'shown/hidden', 'shown/bin']) mkdirSync(at(folder), { recursive: true });
    writeFileSync(at('shown', 'file'), 'shown');
    writeFileSync(at('shown/hidden', 'secret'), 'secret');
    writeFileSync(at('shown/bin', 'own-program'), '#!/bin/sh\necho own program', { mode: 0o755 });
    const runner = commands.runner({
      wall: 'required',
      visible: [commands.base],
      hidden: [at('shown/hidden')],
      programs: [at('shown/bin')],
    });
    const paths = [at('shown', 'file'), at('shown/hidden'), at('shown/hidden/secret'), commands.root];
    expect(await readBy(runner, paths)).toEqual(['shown', '', 'ENOENT', '']);
    expect(textOf(await ranBy(runner, ['own-program']))).toBe('own program\n');
    const dig = `umount ${at('shown/hidden')}; unshare -Urm sh -c 'umount -l ${at('shown/hidden')}; cat ${at('shown/hidden/secret')}'; cat ${at('shown/hidden/secret')}; touch ${at('shown/new')} ${at('shown/hidden/new')}`;
    const dug = await ranBy(runner, ['sh', '-c', dig]);
    expect(textOf(dug)).not.toMatch(/^secret/m);
    expect([existsSync(at('shown/new')), existsSync(at('shown/hidden/new'))]).toEqual([false, false]);
  });

  test('it has no capability, and can gain none', async () => {
    const status = textOf(await run(['cat', '/proc/self/status']));
    for (const set of ['Inh', 'Prm', 'Eff', 'Bnd', 'Amb']) expect(status).toMatch(new RegExp(`^Cap${set}:\\t0+$`, 'm'));
    expect(status).toMatch(/^NoNewPrivs:\t1$/m);
  });

  test('a link in the path of its folder is refused', async () => {
    symlinkSync('/usr', join(commands.home, 'out'));
    const outcome = await walled.run(orderOf(['true'], { cwd: '/sandbox/out' }), NEVER);
    expect(outcome).toEqual({ status: 'not_started', problem: 'CWD_REFUSED' });
  });

  // A number of seconds for sleep that no other process uses.
  const wordOf = (seconds: number) => `${seconds}.${process.pid}`;
  const leaving = (word: string) =>
    `setsid sleep ${word} & trap "" TERM; sleep ${word} & echo on > /sandbox/mark; sleep ${word}`;

  test('on timeout all its processes end, also those that left the group', async () => {
    let timed_out = false;
    for (const timeout_ms of [400, 1_600, 6_400, 25_600]) {
      if (existsSync(join(commands.home, 'mark'))) break;
      const ended = await run(['sh', '-c', leaving(wordOf(6001))], { timeout_ms });
      expect(ended).toMatchObject({ exit_code: 124, timed_out: true, truncated: false });
      ({ timed_out } = ended);
      expect(processesWith(wordOf(6001))).toBe(0);
    }
    expect(timed_out).toBe(true);
  });

  test('when it ends or is cancelled, so do the processes that it left running', async () => {
    expect(await run(['sh', '-c', `setsid sleep ${wordOf(6002)} & echo on`])).toMatchObject({
      exit_code: 0,
      truncated: false,
    });
    expect(processesWith(wordOf(6002))).toBe(0);
    const abort = new AbortController();
    const running = walled.run(orderOf(['sh', '-c', leaving(wordOf(6003)).replace('mark', 'begun')]), abort.signal);
    const rejection = expect(running).rejects.toThrow('closing');
    await until(() => existsSync(join(commands.home, 'begun')));
    abort.abort(new Error('closing'));
    await rejection;
    expect(processesWith(wordOf(6003))).toBe(0);
  });
});

describe('a wall that does not work', () => {
  const broken = (name: string, script: string): string => {
    mkdirSync(at(name), { recursive: true });
    writeFileSync(at(name, 'bwrap'), `#!/bin/sh\n${script}\n`);
    chmodSync(at(name, 'bwrap'), 0o755);
    return at(name);
  };
  const programs = [broken('none', 'echo no >&2; exit 1')];

  test('if a wall is required, nothing is started', async () => {
    const runner = commands.runner({ wall: 'required', programs });
    expect(await runner.hasWall()).toBe(false);
    const outcome = await runner.run(orderOf(['sh', '-c', 'echo > /tmp/started']), NEVER);
    expect(outcome).toEqual({ status: 'not_started', problem: 'WALL_UNAVAILABLE' });
  });

  test('otherwise commands run without one, which is logged once and stated in each outcome', async () => {
    const warnings: string[] = [];
    const warn = (message: string) => void warnings.push(message);
    const runner = commands.runner({ wall: 'auto', programs, log: { info: warn, warn: warn, error: warn } });
    for (let time = 0; time < 2; time++)
      expect(await ranBy(runner, ['true'])).toMatchObject({ exit_code: 0, walled: false });
    expect(warnings).toEqual([expect.stringContaining('no wall')]);
  });

  (hasWall ? test : test.skip)('a wall that fails later is never skipped', async () => {
    const flag = at('fallen');
    const folder = broken('falling', `[ -e ${flag} ] && exit 1\nexec /usr/bin/env PATH=/usr/bin:/bin bwrap "$@"`);
    const runner = commands.runner({ wall: 'auto', programs: [folder] });
    expect(await ranBy(runner, ['true'])).toMatchObject({ walled: true });
    writeFileSync(flag, '');
    const outcome = await runner.run(orderOf(['sh', '-c', 'echo > fell']), NEVER);
    expect(outcome).toEqual({ status: 'not_started', problem: 'WALL_FAILED' });
    expect(existsSync(join(commands.home, 'fell'))).toBe(false);
  });
});

describe('the arguments of bwrap', () => {
  const wall = {
    sandbox: '/s/case',
    home: '/t/home',
    temp: '/t/temp',
    cwd: '/sandbox/in',
    homes: ['/opt/me'],
    shown: ['/tools'],
    hidden: ['/tools/no'],
  };
  const words = wallArguments(wall, ['run', '--ro-bind', '/']);
  const indexOf = (...run: readonly string[]) =>
    words.findIndex((_, index) => run.every((word, more) => words[index + more] === word));

  test('hidden folders come after shown ones, and every mount is made read-only at the end', () => {
    const order = [
      indexOf('--ro-bind-try', '/opt', '/opt'),
      indexOf('--tmpfs', '/opt/me'),
      indexOf('--bind', '/t/home', '/home', '--bind', '/t/temp', '/tmp'),
      indexOf('--ro-bind-try', '/tools', '/tools'),
      indexOf('--tmpfs', '/tools/no'),
      indexOf('--bind', '/s/case', '/sandbox'),
      indexOf('--remount-ro', '/opt/me', '--remount-ro', '/tools/no', '--remount-ro', '/proc', '--remount-ro', '/'),
      indexOf('--chdir', '/sandbox/in', '--', 'run', '--ro-bind', '/'),
    ];
    expect(order.every((index) => index > 0)).toBe(true);
    expect(order).toEqual([...order].sort((a, b) => a - b));
    // Only these three are writable.
    expect(words.filter((word) => word === '--bind')).toHaveLength(3);
    expect(words.slice(0, 4)).toEqual(['--unshare-all', '--die-with-parent', '--cap-drop', 'ALL']);
  });

  test('only existing and visible folders are hidden, and only the outermost of nested ones', () => {
    mkdirSync(at('a/b/c'), { recursive: true });
    symlinkSync(at('a'), at('link'));
    const hidden = [at('a/b/c'), at('link', 'b'), at('a/none'), at('root')];
    expect(wallViewOf([at('link')], hidden).hidden).toEqual([at('a/b')]);
    expect(wallViewOf([], hidden).hidden).toEqual([]);
    expect(wallViewOf([at('link')], []).shown).toContain(at('a'));
  });
});
