// The process that is killed while its agent has effects. At its end it prints all points that it has passed, so that
// an undisturbed process tells where the others can be killed.

import Database from 'better-sqlite3';
import { writeSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { actsOf, follow } from './effects-script.js';
import { CASE_AGENT, deedsFile, EFFECTS_PLANTED, leave, serviceOn } from './effects-service.js';
import { FaultPoints, momentOf, nameOf, unharmed, type Hooks, type Point } from './fault-points.js';
import { openAt, type Laying } from './ground.js';
import { placesIn } from './journal.js';

export type EffectsSaid =
  | { readonly said: 'opened'; readonly settled: number }
  | { readonly said: 'passed'; readonly moments: readonly string[] };

const { values } = parseArgs({
  options: {
    folder: { type: 'string', default: '' },
    life: { type: 'string', default: '1' },
    interpreter: { type: 'string' },
    'kill-at': { type: 'string' },
    planted: { type: 'string', default: 'none' },
    brief: { type: 'boolean', default: false },
    'open-only': { type: 'boolean', default: false },
  },
});

const places = placesIn(values.folder);
const planted = EFFECTS_PLANTED.find((each) => each === values.planted) ?? 'none';
const say = (said: EffectsSaid): void => void writeSync(1, `${JSON.stringify(said)}\n`);

const killAt = values['kill-at'];
const points = new FaultPoints(killAt === undefined ? null : momentOf(killAt), () => {
  process.kill(process.pid, 'SIGKILL');
});
const moments: string[] = [];
const hooks: Hooks = {
  pass: (point: Point) => {
    moments.push(nameOf({ point, nth: points.passed(point) + 1 }));
    points.pass(point);
  },
  isDue: (point) => points.isDue(point),
};

/** The row is in the transaction of the other database, which is committed only now. */
function passCommits(): void {
  type Exec = (this: Database.Database, sql: string) => Database.Database;
  const exec = Object.getOwnPropertyDescriptor(Database.prototype, 'exec')?.value as Exec;
  Database.prototype.exec = function passing(this: Database.Database, sql: string) {
    if (sql === 'COMMIT') hooks.pass('effect.mid');
    return exec.call(this, sql);
  };
}

/** The planted fault: the effect of the intent in this batch runs before the intent is durable. */
const beforeCommit: Laying['beforeCommit'] = ({ trees }) => {
  for (const { entry } of trees.flatMap(({ entries }) => entries)) {
    if (entry.type !== 'run_created' || entry.body.request?.name !== 'billing.charge') continue;
    const what = actsOf(`w${values.life}`).find(({ request }) => request === 'billing.charge')?.what ?? '';
    leave(deedsFile(places, 'billing.charge'), { key: entry.body.run_id, what }, unharmed);
  }
};

passCommits();
const { turnpike, close } = await openAt({
  places,
  hooks,
  life: values.life,
  ...serviceOn({ places, hooks, planted }),
  ...(planted === 'before-commit' ? { beforeCommit } : {}),
});
say({ said: 'opened', settled: turnpike.recovery.settled });
if (!values['open-only']) await follow(await turnpike.startAgent(CASE_AGENT), `w${values.life}`, values.brief);
await close();
say({ said: 'passed', moments });
