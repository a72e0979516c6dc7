// Withheld content: `npm run campaign -- redteam --only canaries`. Each round plants its own home, on either
// interpreter, with or without lanes that let approved exports contain content, and queries its routes in another
// order.

import { INTERPRETERS } from '../../src/kernel/interpreter/interpreter.js';
import { ROUTES } from '../../src/interfaces/http/routes/system-routes.js';
import { tempFolder } from '../fixtures/temp-folder.js';
import { Random } from '../simulation/random.js';
import type { RedteamCampaign } from './campaign-runner.js';
import { commandOutputs } from './canary-commands.js';
import { httpOutputs, type Output } from './canary-http.js';
import { PLANTED_LEAKS } from './canary-leaks.js';
import { libraryOutputs } from './canary-library.js';
import { walked } from './canary-walk.js';
import { plantedWorld, type CanaryWorld } from './canary-world.js';

const ROUNDS = 4;
const SECONDS_PER_ROUND = 30;

export const campaign: RedteamCampaign = async ({ seed, seconds, say }) => {
  const rounds = seconds === undefined ? ROUNDS : Math.max(1, Math.round(seconds / SECONDS_PER_ROUND));
  const random = new Random(`canaries ${seed}`);
  const [leaks, totals] = [new Set<string>(), { outputs: 0, bytes: 0, shown: 0 }];
  let found = 0;
  for (let round = 0; round < rounds; round += 1) {
    const exportsContent = random.chance(0.5);
    const interpreter = random.pick(INTERPRETERS);
    const world = await plantedWorld({ exportsContent, interpreter });
    for (const outputs of walks(world, random)) {
      const walk = await walked(outputs);
      for (const leak of walk.leaks) leaks.add(leak);
      for (const name of ['outputs', 'bytes', 'shown'] as const) totals[name] += walk[name];
    }
    say(`home ${round + 1} of ${rounds}: ${totals.outputs} outputs, ${leaks.size} leaks`);
    if (round === 0) for (const leak of PLANTED_LEAKS) found += (await leak.isFound(world)) ? 1 : 0;
    await world.bench.close();
  }
  const failures = [...leaks];
  if (totals.shown === 0) failures.push('content that is shown was not found: the walk sees nothing');
  if (found < PLANTED_LEAKS.length) failures.push(`${found} of ${PLANTED_LEAKS.length} planted leaks were found`);
  const planted = { 'planted leaks': PLANTED_LEAKS.length, 'planted leaks found': found };
  return { figures: { homes: rounds, ...totals, leaks: leaks.size, ...planted }, failures };
};

function* walks(world: CanaryWorld, random: Random): Generator<AsyncIterable<Output>> {
  yield commandOutputs(world, tempFolder('canaries'));
  yield libraryOutputs(world);
  const order = ROUTES.map((route) => ({ route, at: random.next() })).sort((a, b) => a.at - b.at);
  yield httpOutputs(world, { routes: order.map(({ route }) => route) });
  yield (async function* log() {
    yield await Promise.resolve({ name: 'the log', bytes: world.log.lines.join('\n') });
  })();
}
