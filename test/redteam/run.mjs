// npm run campaign -- redteam [--only NAME[,NAME]] [--seed N] [--seconds N]
//
// Runs the campaigns that attack Turnpike from outside. A campaign NAME is the file NAME.campaign-runner.ts in this
// folder, which exports `campaign` (RedteamCampaign of campaign-runner.ts): to add one, add its file. Each prints its
// figures and violations; the exit code is 1 after a violation.
//
// --only     the campaigns to run, by name; default: all of them
// --seed     the seed of all random choices; default: 1
// --seconds  how long each campaign attacks, approximately; default: the campaign's own value

import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const SUFFIX = '.campaign-runner.ts';
const folder = fileURLToPath(new URL('.', import.meta.url));
const known = readdirSync(folder)
  .filter((name) => name.endsWith(SUFFIX))
  .map((name) => name.slice(0, -SUFFIX.length))
  .sort();

const { values } = parseArgs({
  options: { only: { type: 'string' }, seed: { type: 'string', default: '1' }, seconds: { type: 'string' } },
});
const names = values.only === undefined ? known : values.only.split(',');
const unknown = names.filter((name) => !known.includes(name));
if (unknown.length > 0) throw new Error(`there is no campaign ${unknown.join(', ')}: there are ${known.join(', ')}`);

for (const name of names) {
  const program = new URL(`../../build/test/redteam/${name}.campaign-runner.js`, import.meta.url);
  const { campaign } = await import(program.href);
  const { figures, failures } = await campaign({
    seed: Number(values.seed),
    ...(values.seconds === undefined ? {} : { seconds: Number(values.seconds) }),
    say: (line) => process.stderr.write(`${name}: ${line}\n`),
  });
  for (const [figure, value] of Object.entries(figures)) console.log(`${name}: ${figure}: ${value}`);
  for (const failure of failures) console.log(`${name}: FAILED: ${failure}`);
  console.log(`${name}: ${failures.length === 0 ? 'held' : `${failures.length} failures`}`);
  if (failures.length > 0) process.exitCode = 1;
}
