// Commands read turnpike.yaml and TURNPIKE_* variables; their options win.

import { describe, expect, test } from '@jest/globals';
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { readTurnpikeOptions } from '../../../../src/index.js';
import { jsonLines, put, tempFolder, think, turnpike } from '../fake-io.js';

const valuesOf = async (folder: string, argv: readonly string[], environment: Record<string, string> = {}) => {
  const { stdout, stderr, code } = await turnpike(folder, ['config', 'print', '--json', ...argv], { environment });
  return { code, stderr, rows: jsonLines<{ key: string; value: unknown; origin: unknown }>(stdout) };
};

describe('commands', () => {
  test('use the home directory of the file, of a variable, of the option: the later wins', async () => {
    const folder = tempFolder();
    put(folder, 'turnpike.yaml', 'home: one\n');
    for (const name of ['one', 'two', 'three'])
      await turnpike(folder, ['init', '--home', name, '--contract', `c-${name}`]);
    const environment = { TURNPIKE_HOME: 'two' };
    put(folder, 'one.jsonl', `${think()}\n`);
    for (const [argv, variables] of [
      [[], {}],
      [[], environment],
      [['--home', 'three'], environment],
    ] as const) {
      const { code } = await turnpike(folder, ['run', 'one.jsonl', ...argv], { environment: variables });
      expect(code).toBe(0);
    }
    for (const home of ['one', 'two', 'three']) {
      // An orchestrator and its agent.
      expect(jsonLines((await turnpike(folder, ['runs', '--json', '--home', home])).stdout)).toHaveLength(2);
    }
  });

  test('fail with every problem of the configuration, before they do anything', async () => {
    const folder = tempFolder();
    put(folder, 'turnpike.yaml', 'hoome: one\nserve: 5\n');
    const { code, stderr, stdout } = await turnpike(folder, ['init'], { environment: { TURNPIKE_CONTROL: 'yes' } });
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch('turnpike.yaml:1: "hoome" is not a key; did you mean home?');
    expect(stderr).toMatch('turnpike.yaml:2: "serve" takes a mapping of keys to values');
    expect(stderr).toMatch('TURNPIKE_CONTROL takes true or false');
  });

  test('fail if a named file does not exist or is not a file', async () => {
    const folder = tempFolder();
    mkdirSync(join(folder, 'folder.yaml'));
    for (const [file, said] of [
      ['none.yaml', 'does not exist'],
      ['folder.yaml', 'is not a regular file'],
    ] as const) {
      const { code, stderr } = await turnpike(folder, ['runs', '--config', file]);
      expect({ code, said: stderr.includes(said) }).toEqual({ code: 2, said: true });
    }
    const { code } = await turnpike(folder, ['runs'], { environment: { TURNPIKE_CONFIG: 'none.yaml' } });
    expect(code).toBe(2);
  });

  test('version and help need no valid configuration', async () => {
    const folder = tempFolder();
    put(folder, 'turnpike.yaml', ': : :');
    expect((await turnpike(folder, ['version'])).code).toBe(0);
    expect((await turnpike(folder, ['help', 'serve'])).code).toBe(0);
  });

  test('--no-NAME overrides a configured true', async () => {
    const folder = tempFolder();
    put(folder, 'turnpike.yaml', 'mcp:\n  http: true\n  address: 256.0.0.1:99999\n');
    expect((await turnpike(folder, ['mcp'])).stderr).toMatch('is not a valid HOST:PORT');
    expect((await turnpike(folder, ['mcp', '--no-http'])).stderr).toMatch('HOST:PORT needs --http');
  });

  test('--demo ignores a configured home, and refuses one on the command line', async () => {
    const folder = tempFolder();
    put(folder, 'turnpike.yaml', 'home: one\n');
    const stop = AbortSignal.abort();
    expect((await turnpike(folder, ['serve', '--demo', '--port', '0'], { stop })).code).toBe(0);
    expect((await turnpike(folder, ['serve', '--demo', '--home', 'two'], { stop })).code).toBe(2);
  });
});

describe('turnpike config print', () => {
  test('prints each value with its origin, and hides passwords', async () => {
    const folder = tempFolder();
    put(folder, 'turnpike.yaml', 'home: data\nstore: postgres://me:secret@127.0.0.1/db\nserve:\n  port: 80\n');
    const { rows, code } = await valuesOf(folder, [], { TURNPIKE_SERVE_PORT: '81', TURNPIKE_SERVICE_HOST: 'x' });
    const path = join(folder, 'turnpike.yaml');
    expect(code).toBe(0);
    expect(rows).toEqual([
      { key: 'home', value: join(folder, 'data'), origin: { kind: 'file', path, line: 1 } },
      { key: 'store', value: 'postgres://me:***@127.0.0.1/db', origin: { kind: 'file', path, line: 2 } },
      { key: 'serve.port', value: 81, origin: { kind: 'environment', variable: 'TURNPIKE_SERVE_PORT' } },
    ]);
  });

  test('prints a table, with variables that it ignores on stderr', async () => {
    const folder = tempFolder();
    put(folder, 'my.yaml', 'serve:\n  allow_host: [a.example, b.example]\n');
    const environment = {
      TURNPIKE_CONFIG: 'my.yaml',
      TURNPIKE_PORT: 'tcp://10.0.0.1',
      TURNPIKE_OIDC_CLIENT_SECRET: 'secret',
    };
    const { stdout, stderr } = await turnpike(folder, ['config', 'print'], { environment });
    expect(stdout.split('\n')).toEqual([
      'KEY               VALUE                 FROM',
      'serve.allow_host  a.example, b.example  my.yaml:2',
      '',
    ]);
    expect(stderr).toBe('ignored: TURNPIKE_PORT is not a variable of this program\n');
  });

  test('--all lists every key', async () => {
    const { rows } = await valuesOf(tempFolder(), ['--all']);
    expect(rows.length).toBeGreaterThan(40);
    expect(rows.every(({ value }) => value === null)).toBe(true);
  });
});

describe('readTurnpikeOptions', () => {
  test('gives the options of openTurnpike, and leaves sections of commands to them', () => {
    const folder = tempFolder();
    put(folder, 'real.yaml', 'home: h\nlive_trees_max: 5\nstorage:\n  run_bytes: 7\nserve:\n  unknown: 1\n');
    symlinkSync('real.yaml', join(folder, 'turnpike.yaml'));
    const environment = { TURNPIKE_RESTARTS: 'automatic', TURNPIKE_SERVE_PORT: 'x', TURNPIKE_STORE: 'postgres://x' };
    expect(readTurnpikeOptions({ cwd: folder, environment })).toEqual({
      home: join(folder, 'h'),
      liveTreesMax: 5,
      restarts: 'automatic',
      storage: { runBytes: 7 },
    });
  });
});
