// Helpers of the sandbox tests: a separate directory, effects, and direct access to the disk. Loads nothing of the
// sandbox itself, so that a test can replace `node:fs` before.

import { expect } from '@jest/globals';
import { existsSync, lstatSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Effect, EffectResult, PathFact, SandboxFacts } from '../../../src/core/contract/run/effect.js';
import type { JsonObject } from '../../../src/core/contract/json.js';
import type { Sandbox } from '../../../src/engine/ports/effects/sandbox.js';
import { granted } from '../../fixtures/granted.js';
import { diskFolder } from '../../fixtures/temp-folder.js';

export const CASE = 'case_1';
export const LIMITS = { read_bytes_max: 1_048_576, list_entries_max: 1_000 };

/** A text argument or result; anything else becomes ''. */
export const text = (value: unknown): string => (typeof value === 'string' ? value : '');

/** The directories of one test file: `outside`, the sandbox's `root`, and `home`, the directory of `CASE`. */
export interface TestDirectory {
  readonly base: string;
  readonly root: string;
  readonly home: string;
  remove(): void;
}

export function testDirectory(): TestDirectory {
  const base = diskFolder('sandbox');
  const root = join(base, 'root');
  return { base, root, home: join(root, CASE), remove: () => rmSync(base, { recursive: true, force: true }) };
}

let effects = 0;

/** An authorized action; without `before`, as after AUTHORIZE with facts that do not matter. */
export function effect(action: string, args: JsonObject, more: Partial<Effect> = {}): Effect {
  effects += 1;
  const idempotency_key = `key-${effects}`;
  const request_hash = 'a'.repeat(64);
  const whole = { action, args, case_id: CASE, run_id: 'run_000001', idempotency_key, request_hash, before: [] };
  return granted({ ...whole, partial_outputs: false, limits: LIMITS, ...more });
}

/** Runs one action, and checks that no member of the result but `detail` names a path of the host. */
export function perform(sandbox: Sandbox, action: string, args: JsonObject, more: Partial<Effect> = {}): EffectResult {
  return withoutHostPath(sandbox.perform(effect(action, args, more)));
}

export function withoutHostPath<T extends EffectResult | SandboxFacts>(answer: T): T {
  const shown = JSON.stringify(answer, (key, value: unknown) => (key === 'detail' ? undefined : value));
  expect(shown).not.toMatch(new RegExp(`${tmpdir()}|/proc/|turnpike`));
  return answer;
}

/** The facts of one path. */
export function factOf(sandbox: Sandbox, path: string, { portable = false, case_id = CASE } = {}): PathFact {
  const facts = sandbox.gather({ case_id, paths: [path], usage: false, portable_names: portable });
  return withoutHostPath(facts).paths[0] ?? { status: 'no_parent' };
}

export function usageOf(sandbox: Sandbox): SandboxFacts['usage'] {
  return sandbox.gather({ case_id: CASE, paths: [], usage: true, portable_names: false }).usage;
}

/** `failed`, with any detail. */
export const failure = (cause: string): unknown => expect.objectContaining({ status: 'failed', cause });
export const done = (result: JsonObject = {}): EffectResult => ({ status: 'done', result });

/** Everything below a directory on the disk: relative path -> content, `dir`, `-> target` or `other`. */
export function treeOf(directory: string, prefix = ''): Record<string, string> {
  const found: Record<string, string> = {};
  for (const name of existsSync(directory) ? readdirSync(directory) : []) {
    const path = join(directory, name);
    const stats = lstatSync(path);
    if (stats.isDirectory()) Object.assign(found, { [prefix + name]: 'dir' }, treeOf(path, `${prefix}${name}/`));
    else if (stats.isSymbolicLink()) found[prefix + name] = `-> ${readlinkSync(path)}`;
    else found[prefix + name] = stats.isFile() ? `file ${readFileSync(path, 'utf8')}` : 'other';
  }
  return found;
}

/** Runs a program of the system. @returns whether it succeeded */
export const run = (program: string, ...args: readonly string[]): boolean =>
  spawnSync(program, args, { stdio: 'ignore' }).status === 0;

/** How many descriptors this process has open. */
export const openDescriptors = (): number => readdirSync('/proc/self/fd').length;

/** Reports a test that cannot run here in one line. */
export const skip = (why: string): void => void process.stdout.write(`skipped: ${why}\n`);
