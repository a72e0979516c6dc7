// `turnpike serve --demo` of the build, as a process of its own.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const COMMAND = join(ROOT, 'dist/src/interfaces/cli/main.js');
const ADDRESS = /(http:\/\/127\.0\.0\.1:\d+)\/#token=(\S+)\n/;
const START_MS_MAX = 60_000;

/**
 * Starts the demonstration on a free port.
 * @returns its address, its token, and a function that ends it
 */
export async function startDemo() {
  const child = spawn(process.execPath, [COMMAND, 'serve', '--demo', '--port', '0'], {
    cwd: tmpdir(),
    env: { PATH: process.env.PATH },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = once(child, 'close');
  const [, url, token] = await readAddress(child);
  const close = async () => {
    child.kill('SIGTERM');
    await ended;
  };
  return { url, token, close };
}

function readAddress(child) {
  return new Promise((resolve, reject) => {
    let output = '';
    const fail = (why) => {
      child.kill('SIGKILL');
      reject(new Error(`turnpike serve --demo ${why}: ${output}`));
    };
    const failEarly = () => fail('ended early');
    const timer = setTimeout(() => fail('printed no address in time'), START_MS_MAX);
    child.once('close', failEarly);
    child.stderr.on('data', (chunk) => {
      output += chunk.toString();
      const found = ADDRESS.exec(output);
      if (found === null) return;
      clearTimeout(timer);
      child.off('close', failEarly);
      resolve(found);
    });
  });
}
