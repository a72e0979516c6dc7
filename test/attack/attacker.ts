import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { orderFor, type Scene } from './scenes.js';

// Plain JavaScript, which no build copies: its path works from the sources and from the build.
const PROGRAM = ['./swapper.mjs', '../../../test/attack/swapper.mjs']
  .map((path) => fileURLToPath(new URL(path, import.meta.url)))
  .find((path) => existsSync(path));

export interface Attacker {
  /** Stops the attacker. @returns whether it was running until now */
  stop(): Promise<boolean>;
}

/** Starts the attacker on a scene, and waits until it is running. */
export async function startAttacker(scene: Scene, base: string, linked: string, seed: number): Promise<Attacker> {
  if (PROGRAM === undefined) throw new Error('swapper.mjs is missing next to the campaign');
  const child = spawn(process.execPath, [PROGRAM, orderFor(scene, base, linked, seed)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  await Promise.race([once(child.stdout, 'data'), ended]);
  return {
    async stop() {
      const wasAtWork = child.exitCode === null;
      child.kill('SIGKILL');
      await ended;
      child.stdout.destroy();
      return wasAtWork;
    },
  };
}
