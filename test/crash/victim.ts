// The process that is killed: a whole Turnpike on a real home. It prints one line for every result as soon as it
// receives it, with a write that has ended when it returns: what is printed was acknowledged.

import { writeSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { codeOf } from './codes.js';
import type { Planted } from './executor.js';
import { FaultPoints, momentOf, nameOf, type Moment } from './fault-points.js';
import { openAt, type Opened } from './ground.js';
import { append, placesIn } from './journal.js';
import { work, type Said } from './workload.js';

const { values } = parseArgs({
  options: {
    folder: { type: 'string', default: '' },
    seed: { type: 'string', default: '1' },
    life: { type: 'string', default: '1' },
    interpreter: { type: 'string' },
    attached: { type: 'string', default: '2' },
    remote: { type: 'string', default: '1' },
    steps: { type: 'string', default: '8' },
    'kill-at': { type: 'string' },
    'stop-at': { type: 'string' },
    planted: { type: 'string', default: 'none' },
    'head-stuck': { type: 'string' },
    'open-only': { type: 'boolean', default: false },
    hold: { type: 'boolean', default: false },
  },
});

const places = placesIn(values.folder);
const say = (said: Said): void => void writeSync(1, `${JSON.stringify(said)}\n`);

/** Once stopped, another process continues it; its later effects are in the journal after this line. */
function act(moment: Moment): void {
  if (values['kill-at'] !== undefined) process.kill(process.pid, 'SIGKILL');
  process.kill(process.pid, 'SIGSTOP');
  append(places.journal, { at: 'fault', moment: nameOf(moment) });
}

async function open(): Promise<Opened | null> {
  const moment = values['kill-at'] ?? values['stop-at'];
  try {
    return await openAt({
      places,
      hooks: new FaultPoints(moment === undefined ? null : momentOf(moment), act),
      life: values.life,
      planted: values.planted as Planted,
      ...(values['head-stuck'] === undefined ? {} : { headStuckFrom: Number(values['head-stuck']) }),
    });
  } catch (error) {
    const code = codeOf(error);
    if (code === null) throw error;
    say({ said: 'refused', code });
    return null;
  }
}

append(places.journal, { at: 'life', life: values.life });
say({ said: 'booted' });
const opened = await open();
if (opened !== null) {
  const { turnpike, lag, close } = opened;
  const { settled, interrupted, damaged } = turnpike.recovery;
  say({ said: 'opened', settled, interrupted, damaged });
  const count = (text: string): number => Number(text);
  const saying = (said: Said): void => {
    lag.most = Math.max(lag.most, lag.committed - lag.vouched);
    say(said);
  };
  const { seed, life, attached, remote, steps } = values;
  const numbers = { seed: count(seed), attached: count(attached), remote: count(remote), steps: count(steps) };
  if (!values['open-only']) {
    await work({ turnpike, places, say: saying, life, ...numbers }).catch((error: unknown) => {
      const code = codeOf(error);
      if (code === null) throw error;
      say({ said: 'refused', code });
    });
  }
  say({ said: 'lag', entries: lag.most });
  if (values.hold) await new Promise((resolve) => setTimeout(resolve, 600_000));
  await close();
}
