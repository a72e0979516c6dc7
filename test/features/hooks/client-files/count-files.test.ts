// Files that count: small, bounded, and never trusted.

import { beforeEach, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CountFiles, isCallIn, UNDECIDED_MAX } from '../../../../src/features/hooks/client-files/count-files.js';
import { tempFolder } from '../../../fixtures/temp-folder.js';

let folder: string;
let files: CountFiles;
/** The file of a session that was counted. */
let path: string;
beforeEach(() => {
  folder = tempFolder('counts');
  files = new CountFiles(join(folder, 'home'), { HOME: folder, XDG_DATA_HOME: join(folder, 'data') });
  files.add('codex', 'one', 'no_service');
  const counts = join(folder, 'data/turnpike/undecided');
  path = join(counts, readdirSync(counts)[0] ?? '');
});
const read = () => files.read('codex', 'one');
const unnamed = () => files.read('codex', null);

test('counts up to a limit, in a file of the user alone; what it has no place for is counted without its session', () => {
  for (const reason of ['too_long', 'unreadable', 'failed', 'refused', 'refused'] as const)
    files.add('codex', 'one', reason);
  expect(read()).toEqual({ no_service: 1, too_long: 1, unreadable: 1, failed: 1, refused: 2 });
  expect([readFileSync(path, 'utf8'), statSync(path).mode & 0o777]).toEqual(['slufrr', 0o600]);
  writeFileSync(path, 's'.repeat(UNDECIDED_MAX - 1));
  files.add('codex', 'one', 'no_service');
  files.add('codex', 'one', 'too_long');
  expect([read(), unnamed()]).toEqual([{ no_service: UNDECIDED_MAX }, { too_long: 1 }]);
  files.remove('codex', 'one');
  files.remove('codex', 'one');
  expect(read()).toEqual({});
});

test('0088: has nothing but counts, follows no link, waits for no FIFO, and reads nothing that is too long', () => {
  writeFileSync(path, '\u0000{"a":1}');
  expect(read()).toEqual({ unreadable: 8 });
  writeFileSync(path, 's'.repeat(UNDECIDED_MAX + 1));
  expect(read()).toEqual({});
  const other = join(folder, 'other');
  writeFileSync(other, 'kept');
  const places: readonly (() => unknown)[] = [
    () => symlinkSync(other, path),
    () => expect(spawnSync('mkfifo', [path]).status).toBe(0),
    () => mkdirSync(path),
  ];
  for (const [at, make] of places.entries()) {
    rmSync(path);
    make();
    files.add('codex', 'one', 'no_service');
    expect([unnamed(), readFileSync(other, 'utf8')]).toEqual([{ no_service: at + 1 }, 'kept']);
    if (at > 0) expect(read()).toEqual({});
  }
});

test('makes no more than 1024 files', () => {
  for (let at = 0; at < 1_024; at += 1) files.add('codex', String(at), 'failed');
  expect(readdirSync(join(path, '..'))).toHaveLength(1_024);
  files.add('codex', '7', 'failed');
  expect(files.read('codex', '7')).toEqual({ failed: 2 });
  expect([files.others('codex', ['one', '7']), files.others('cline', [])]).toEqual([1_022, 0]);
});

test('0088: names of events that are no calls', () => {
  const names = ['PostToolUse', 'AfterTool', 'postToolUse', 'afterShellExecution', 'tool_result', 'SessionStart'];
  const others = ['sessionEnd', 'session_shutdown', 'SubagentStop'];
  expect([...names, ...others].filter((name) => isCallIn(`{"hook_event_name": "${name}"}`))).toEqual([]);
  const calls = ['PreToolUse', 'BeforeTool', 'preToolUse', 'beforeReadFile', ''];
  expect(calls.filter((name) => !isCallIn(`{"hookName":"${name}"}`))).toEqual([]);
  expect(isCallIn('')).toBe(true);
});
