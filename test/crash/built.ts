// The compiled victim for the tests: processes that are killed are plain Node programs. Built when a source is newer,
// by one worker at a time, and copied, so that nobody who builds meanwhile pulls it from under a process.

import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { oneAtATime } from '../fixtures/one-at-a-time.js';
import { ROOT } from '../sources.js';

const BUILD = join(ROOT, 'build');
const STAMP = join(BUILD, 'test/crash/built');

/** Puts the build of the present sources into `folder`. @returns the path of the victim in it */
export async function builtVictim(folder: string): Promise<string> {
  await oneAtATime('crash-build', () => {
    if (!isFresh()) compile();
    for (const part of ['build', 'policies', 'package.json']) {
      cpSync(join(ROOT, part), join(folder, part), { recursive: true });
    }
  });
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  return join(folder, 'build/test/crash/victim.js');
}

/** Without types, which `npm run typecheck` checks: that is three quarters of the time. */
function compile(): void {
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc');
  const began = Date.now();
  const { stdout } = spawnSync(process.execPath, [compiler, '-p', 'tsconfig.campaigns.json', '--noCheck'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  if (!existsSync(join(BUILD, 'test/crash/victim.js'))) throw new Error(`the build failed:\n${stdout}`);
  writeFileSync(STAMP, `${began}\n`);
}

const isFresh = (): boolean =>
  existsSync(STAMP) && newestOf(['machines', 'src', 'test/crash']) < statSync(STAMP).mtimeMs;

function newestOf(folders: readonly string[]): number {
  const files = folders.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true }).map((name) => join(ROOT, folder, String(name))),
  );
  return Math.max(...files.map((file) => statSync(file).mtimeMs));
}
