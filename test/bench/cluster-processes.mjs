// The processes of the cluster measurement, and the processor time that they use.

import { fork } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('cluster-worker.mjs', import.meta.url));
/** One tick of the kernel's process times, in ms. */
const TICK_MS = 10;

export class BenchWorker {
  #child;
  #asked = new Map();
  #ids = 0;

  static async start(options) {
    const worker = new BenchWorker();
    const ready = worker.#expect(0);
    worker.#child = fork(PROGRAM, [JSON.stringify(options)], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
    worker.#child.on('message', ({ id, result, error }) => {
      const asked = worker.#asked.get(id);
      worker.#asked.delete(id);
      if (error === undefined) asked?.resolve(result);
      else asked?.reject(new Error(error));
    });
    worker.#child.on('exit', () => {
      for (const { reject } of worker.#asked.values()) reject(new Error('the worker has ended'));
    });
    await ready;
    return worker;
  }

  #expect(id) {
    return new Promise((resolve, reject) => this.#asked.set(id, { resolve, reject }));
  }

  ask(command, parameters = {}) {
    this.#ids += 1;
    const answer = this.#expect(this.#ids);
    answer.catch(() => undefined);
    this.#child.send({ id: this.#ids, command, ...parameters });
    return answer;
  }

  /** @returns once it has ended */
  kill() {
    const ended = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#child.kill('SIGKILL');
    return ended;
  }
}

/** The processor time of a server and its backends so far, ended ones too, in ms. */
export function serverTime(postmaster) {
  let ticks = 0;
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const fields = statOf(name);
    if (fields === null) continue;
    const own = Number(fields[11]) + Number(fields[12]);
    if (Number(name) === postmaster) ticks += own + Number(fields[13]) + Number(fields[14]);
    else if (Number(fields[1]) === postmaster) ticks += own;
  }
  return ticks * TICK_MS;
}

/** The fields of a process from its state on; null if it has gone. */
function statOf(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    return null;
  }
}
