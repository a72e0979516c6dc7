// Decisions that are made again under another policy per second of one core's time, compared with a floor in the same
// process: the payload parsed, checked by a compiled schema, and three names looked up in sets. It measures the
// processor time of the process, so that other load on the machine changes little.
// With `--conditions`, the other policy has that many, and no decision of the ledger meets one.
// `npm run bench -- simulate [--steps 8000] [--ms 2000] [--conditions 20]`

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { openTurnpike, winstonLog } from '../../dist/src/index.js';
import { declareFeatures } from '../../build/compiled/src/features/declare-features.js';
import { decisionsIn } from '../../build/compiled/src/features/simulation/decision-fold.js';
import { decideUnderPolicy } from '../../build/compiled/src/features/simulation/decide-under-policy.js';
import { compareDecision, simulate } from '../../build/compiled/src/features/simulation/simulate.js';
import { CEDAR_CONDITIONS } from '../../build/compiled/src/features/conditions/condition-language.js';
import { conditionsOf, patientContract } from './contract.mjs';
import { proposal } from './floor.mjs';
import { KINDS, payload } from './payloads.mjs';

declareFeatures();
const { values } = parseArgs({
  options: {
    steps: { type: 'string', default: '8000' },
    ms: { type: 'string', default: '2000' },
    conditions: { type: 'string', default: '0' },
  },
});
const steps = Number(values.steps);
const AGENTS = 64;
const CONDITIONS = Number(values.conditions);
const AIM = CONDITIONS === 0 ? 50_000 : 10_000;
const folder = mkdtempSync(join(tmpdir(), 'turnpike-simulate-'));
const caseDir = join(folder, 'home/sandbox/case-local/a/b');

const known = [
  new Set(['SANDBOX_AGENT']),
  new Set(['SANDBOX_FILES']),
  new Set(Object.values(KINDS).map((k) => k().action)),
];
const decoder = new TextDecoder('utf-8', { fatal: true });

function floor({ facts, role_id, lane_id }) {
  if (facts.kind !== 'step') return known[0].has(role_id) && known[1].has(lane_id);
  const value = JSON.parse(decoder.decode(facts.input.raw));
  return proposal.Check(value) && known[0].has(role_id) && known[1].has(lane_id) && known[2].has(value.action);
}

/** Milliseconds of processor time until now. */
const used = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
};

/** The rate per second, repeating the whole list until the time is over. */
function rate(list, decide) {
  for (const each of list.slice(0, 5_000)) decide(each);
  const start = used();
  let done = 0;
  do {
    for (const each of list) decide(each);
    done += list.length;
  } while (used() - start < Number(values.ms));
  return (done * 1000) / (used() - start);
}

function conditionsFor(policy) {
  const file = { path: 'conditions.cedar', bytes: Buffer.from(conditionsOf(CONDITIONS)) };
  const { conditions, findings } = CEDAR_CONDITIONS.load({ conditions: file }, policy);
  if (findings.length > 0) throw new Error(findings.map(({ message }) => message).join('\n'));
  return { conditions };
}

const shown = (number) => Math.round(number).toLocaleString('en');

try {
  const turnpike = await openTurnpike({
    home: join(folder, 'home'),
    contract: patientContract(join(folder, 'contract')),
    log: winstonLog('error'),
    control: false,
  });
  mkdirSync(caseDir, { recursive: true });
  writeFileSync(join(caseDir, 'note.txt'), 'n'.repeat(1024));
  const kinds = Object.keys(KINDS);
  await Promise.all(
    Array.from({ length: AGENTS }, async (_, n) => {
      const agent = await turnpike.startAgent({ case: 'case-local' });
      for (let i = 0; i < steps / AGENTS; i += 1) await agent.respond(payload(kinds[(n + i) % kinds.length]));
      await agent.end();
    }),
  );
  const count = { trees: 0, entries: 0 };
  const decisions = [];
  for await (const decision of decisionsIn(turnpike.ledger, undefined, count)) decisions.push(decision);
  // Another policy: source code may be deleted, and the sandbox is smaller.
  const { policy } = decisions[0];
  const wider = new Map([...policy.actions, ['DELETE_FILE', { action: 'DELETE_FILE' }]]);
  const smaller = { ...policy, actions: wider, sandbox: { ...policy.sandbox, bytes_max: 1_500 } };
  const other = CONDITIONS === 0 ? smaller : { ...smaller, ...conditionsFor(policy) };
  const differing = decisions.filter((decision) => compareDecision(decision, other) !== null).length;
  const judged = rate(decisions, (decision) => decideUnderPolicy(decision, other));
  const least = rate(decisions, floor);
  const ofSteps = decisions.filter(({ facts }) => facts.kind === 'step');
  const alone = rate(ofSteps, (decision) => decideUnderPolicy(decision, other));
  // Under other limits every payload is parsed and checked again.
  const stricter = { ...other, limits: { ...other.limits, payload_depth_max: 31 } };
  const anew = rate(ofSteps, (decision) => decideUnderPolicy(decision, stricter));
  const start = used();
  const result = await simulate(
    turnpike.ledger,
    () => other,
    () => undefined,
  );
  const whole = (result.decisions * 1000) / (used() - start);
  console.log(
    `${count.trees} run trees, ${shown(count.entries)} entries, ${shown(decisions.length)} decisions ` +
      `(${shown(ofSteps.length)} of steps), ${shown(differing)} otherwise or undecidable under the other policy`,
  );
  console.log(
    `decided again          ${shown(judged)}/s   floor ${shown(least)}/s, ratio ${(judged / least).toFixed(2)}`,
  );
  console.log(
    `  of steps alone       ${shown(alone)}/s   with other limits, every payload parsed anew: ${shown(anew)}/s`,
  );
  console.log(`read, fold and decide  ${shown(whole)}/s   everything in the ledger recomputed on the way`);
  console.log(`aimed at ${shown(AIM)}/s decided again: ${judged >= AIM ? 'reached' : 'missed'}`);
  await turnpike.close();
} finally {
  rmSync(folder, { recursive: true, force: true });
}
