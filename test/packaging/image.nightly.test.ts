// The image of the Dockerfile: built by buildah from the packed package, and run by crun as an unprivileged user with a
// read-only root, no capability, no shell and one volume.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { chownSync, existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { built } from '../docs/built.js';
import { diskFolder } from '../fixtures/temp-folder.js';
import { Image, TRIAL, type Container } from './image.js';
import { reasonToSkip } from './programs.js';

const MS_MAX = 240_000;
const reason = reasonToSkip(['buildah', 'crun'], TRIAL);
const suite = reason === null ? describe : describe.skip;

const STEP = `
const call = async (path, body) => {
  const headers = { authorization: 'Bearer ' + process.argv[1], 'content-type': 'application/json' };
  const response = await fetch('http://127.0.0.1:7391/api/v1' + path, { method: 'POST', headers, body: JSON.stringify(body) });
  return response.json();
};
const { run_id } = await call('/agents', { case: 'case-0001' });
const head = { schema_version: '1.0.0', id: crypto.randomUUID(), reasoning: 'A note.' };
const args = { path: '/sandbox/note.md', content: 'Hello.' };
console.log((await call('/agents/' + run_id + '/steps', { ...head, action: 'WRITE_FILE', args })).outcome);
`;

/** Tries to write outside of the volume, and reports as what the process runs. */
const PROBE = `
import { readFileSync, writeFileSync } from 'node:fs';
const status = readFileSync('/proc/1/status', 'utf8');
const codes = ['/probe', '/tmp/probe', '/opt/turnpike/probe'].map((path) => {
  try { writeFileSync(path, ''); return 'written'; } catch ({ code }) { return code; }
});
const [first] = readFileSync('/proc/1/cmdline', 'utf8').split('\\0');
const field = (name) => new RegExp('^' + name + ':\\\\s*(\\\\S+)', 'm').exec(status)[1];
console.log(JSON.stringify({ codes, uid: field('Uid'), capabilities: field('CapEff'), first }));
`;

suite('the image', () => {
  let image: Image;
  let container: Container | null = null;
  let volume = '';
  let before: readonly string[] = [];
  let token = '';
  const evaluated = (program: string, ...args: readonly string[]): readonly string[] => [
    ...['node', '--input-type=module', '--eval', program],
    ...args,
  ];
  const health = (): readonly string[] => image.config.Healthcheck.Test.slice(1);

  beforeAll(async () => {
    await built();
    image = new Image(diskFolder('image'));
    volume = diskFolder('volume');
    // As an engine does with a new volume.
    const { uid, gid } = lstatSync(join(image.root, 'var/lib/turnpike'));
    chownSync(volume, uid, gid);
    before = contentOf(image.root);
  }, MS_MAX);

  afterAll(async () => {
    await container?.close();
    image.close();
  }, MS_MAX);

  test('names user, volume, port, signal and labels, and has neither a shell nor what is not in the package', () => {
    const { User, Volumes, ExposedPorts, StopSignal, Labels } = image.config;
    expect({ User, volumes: Object.keys(Volumes), ports: Object.keys(ExposedPorts), StopSignal }).toEqual({
      User: '65532:65532',
      volumes: ['/var/lib/turnpike'],
      ports: ['7391/tcp'],
      StopSignal: 'SIGTERM',
    });
    expect(Labels).toMatchObject({
      'org.opencontainers.image.title': 'Turnpike',
      'org.opencontainers.image.licenses': 'Apache-2.0',
      'org.opencontainers.image.version': '1.2.3',
    });
    expect(readdirSync(join(image.root, 'usr/bin'))).toEqual(['node']);
    expect(before.filter((line) => /secret\.txt|\.tgz |\/obj\.target|sqlite3\.c /.test(line))).toEqual([]);
    expect(existsSync(join(image.root, 'opt/turnpike/node_modules/pg'))).toBe(true);
  });

  test('its health check fails where nothing serves', () => {
    expect(image.run(volume, [], health()).status).toBe(1);
  });

  test(
    'creates a home directory in the volume, and serves it',
    async () => {
      expect(image.run(volume, ['init', '--template', 'reference'])).toMatchObject({ status: 0, stderr: '' });
      const made = image.run(volume, ['token', '--actor', 'reporter', '--role', 'SANDBOX_AGENT', '--right', 'act']);
      expect(made.status).toBe(0);
      token = made.stdout.trim();
      container = image.start(volume);
      await container.prints(/http:\/\/0\.0\.0\.0:7391/);
      expect(container.exec(health())).toEqual({ status: 0, stdout: '', stderr: '' });
    },
    MS_MAX,
  );

  test('executes a step, whose file is in the volume', () => {
    expect(container?.exec(evaluated(STEP, token))).toMatchObject({ status: 0, stdout: 'SUCCESS\n' });
    expect(readFileSync(join(volume, '.turnpike/sandbox/case-0001/note.md'), 'utf8')).toBe('Hello.');
  });

  test('runs as an unprivileged user without capabilities, and can write only to the volume', () => {
    const stdout = container?.exec(evaluated(PROBE)).stdout ?? '';
    expect(JSON.parse(stdout)).toEqual({
      codes: ['EROFS', 'EROFS', 'EROFS'],
      uid: '65532',
      capabilities: '0000000000000000',
      first: 'node',
    });
  });

  test('ends with exit code 0 on its stop signal, as the first process of the container', async () => {
    expect(await container?.stop(image.config.StopSignal)).toBe(0);
    expect(image.run(volume, ['ledger', 'verify'])).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^ok: /),
    });
  });

  test('has written nothing outside of the volume', () => {
    expect(contentOf(image.root)).toEqual(before);
    expect(readdirSync(volume).toSorted()).toEqual(['.turnpike', 'contract']);
  });
});

/** Every file with what changes when it is written. */
const contentOf = (root: string): readonly string[] =>
  readdirSync(root, { recursive: true, encoding: 'utf8' })
    .map((path) => {
      const { size, mode, mtimeMs } = lstatSync(join(root, path));
      return `${path} ${mode} ${size} ${mtimeMs}`;
    })
    .toSorted();
