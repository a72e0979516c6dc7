// Programs as their users run them: as separate processes, with a small environment.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, openSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../sources.js';

export const MS_MAX = 120_000;

export interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const ENVIRONMENT = { PATH: process.env['PATH'] };

/** Runs a Node program to its end. */
export async function run(program: string, args: readonly string[], cwd: string): Promise<Ended> {
  const child = spawn(process.execPath, [program, ...args], { cwd, timeout: MS_MAX, env: ENVIRONMENT });
  const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)];
  const [status] = (await once(child, 'close')) as [number | null];
  return { status, stdout: stdout(), stderr: stderr() };
}

/** The same, with both outputs in one, in the order in which they were written, as a terminal shows them. */
export async function shown(program: string, args: readonly string[], cwd: string, into: string): Promise<string> {
  const out = openSync(into, 'w');
  const stdio = ['ignore', out, out] as const;
  await once(
    spawn(process.execPath, [program, ...args], { cwd, timeout: MS_MAX, env: ENVIRONMENT, stdio: [...stdio] }),
    'close',
  );
  return readFileSync(into, 'utf8');
}

function collect(stream: NodeJS.ReadableStream): () => string {
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  return () => Buffer.concat(chunks).toString('utf8');
}

/** Creates a folder with the package as it would be installed from its archive: built files and policies. */
export function installed(at: string): string {
  const own = join(at, 'node_modules/turnpike');
  mkdirSync(own, { recursive: true });
  for (const part of ['dist', 'policies', 'package.json'])
    cpSync(join(ROOT, part), join(own, part), { recursive: true });
  for (const found of readdirSync(join(ROOT, 'node_modules'))) {
    if (!found.startsWith('.')) symlinkSync(join(ROOT, 'node_modules', found), join(at, 'node_modules', found));
  }
  return at;
}

/** Copies an example to where it can run; its imports are found next to it. */
export function put(name: string, at: string): string {
  cpSync(join(ROOT, 'docs/examples', name), join(at, name));
  return join(at, name);
}
