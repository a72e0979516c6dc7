// All checks of a home whose process was killed: as it is on the disk, and after it was opened again.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createHome, homePaths, openHome } from '../../src/home/home.js';
import { LedgerReader } from '../../src/runtime/ledger/ledger-reader.js';
import { checkJournal, checkOutcomes, checkSandbox } from './check-effects.js';
import { checkSaid } from './check-said.js';
import { unharmed } from './fault-points.js';
import { openAt } from './ground.js';
import { placesIn, type Places } from './journal.js';
import { factsOf, type LedgerFacts } from './ledger-facts.js';
import { CASES, LARGE_FILE, proposalOf } from './script.js';
import type { Tally } from './tally.js';
import type { Said } from './workload.js';
import '../fixtures/declared-features.js';

/** Creates a folder with a home. */
export async function prepare(folder: string): Promise<Places> {
  mkdirSync(folder, { recursive: true });
  const places = placesIn(folder);
  await furnish(places);
  return places;
}

/** Creates the home. Every case has a file whose content is too large for a row of the database. */
export async function furnish(places: Places): Promise<void> {
  const { sandbox } = await createHome(places.home);
  for (const case_id of CASES) {
    mkdirSync(join(sandbox, case_id), { mode: 0o700 });
    writeFileSync(join(sandbox, case_id, LARGE_FILE), 'large '.repeat(50_000));
  }
}

/** The home as the dead process left it: acknowledged responses are in the ledger, and no effect ran twice. */
export async function checkKilled(tally: Tally, places: Places, said: readonly Said[], label: string): Promise<void> {
  const { store, externalHeadStore } = openHome(homePaths(places.home), { readOnly: true });
  try {
    const reader = new LedgerReader(store, externalHeadStore);
    await checkProofs(tally, reader, label);
    const facts = await factsOf(reader);
    checkSaid(tally, said, facts, label);
    checkJournal(tally, places, facts, label);
  } finally {
    await store.close();
    await externalHeadStore.close();
  }
}

/** Opens the home, which recovers it, and runs all checks. */
export async function checkReopened(tally: Tally, places: Places, said: readonly Said[], label: string): Promise<void> {
  const life = `C${tally.checks}`;
  const { turnpike, close } = await openAt({ places, hooks: unharmed, life });
  try {
    tally.that(turnpike.recovery.damaged === 0, () => `${label}: a run tree does not fold any more`);
    const before = await factsOf(turnpike.ledger);
    checkLives(tally, said, before, label);
    for (const run_id of livingIn(before)) {
      const agent = await turnpike.agent(run_id);
      const outcome = await agent?.submit(proposalOf(`${life} ${run_id}`, 'THINK', {})).catch(String);
      const text = JSON.stringify(outcome ?? 'nothing');
      tally.that(text.includes('"SUCCESS"'), () => `${label}: remote run ${run_id} is not alive: ${text}`);
    }
    await checkProofs(tally, turnpike.ledger, label);
    const facts = await factsOf(turnpike.ledger);
    checkSaid(tally, said, facts, label);
    checkJournal(tally, places, facts, label);
    checkOutcomes(tally, places, facts, label);
    checkSandbox(tally, places, facts, label);
  } finally {
    await close();
  }
}

async function checkProofs(tally: Tally, reader: LedgerReader, label: string): Promise<void> {
  const verdict = await reader.verify();
  tally.that(verdict.verdict !== 'refused', () => `${label}: verify: ${JSON.stringify(verdict)}`);
  const report = await reader.replay();
  const { verdict: replayed, difference } = report;
  const isReplayed = replayed === 'replayed' || replayed === 'nothing';
  tally.that(isReplayed, () => `${label}: replay: ${replayed}: ${JSON.stringify(difference)}`);
}

/** D3: attached runs have ended, as INTERRUPTED if not before; remote ones are live, unless they ended themselves. */
function checkLives(tally: Tally, said: readonly Said[], facts: LedgerFacts, label: string): void {
  const living = new Set(livingIn(facts));
  for (const { run_id, run_kind, status, root_run_id, outcome } of facts.records.values()) {
    const open = status === 'created' || status === 'running';
    const excused = living.has(run_id) || (run_kind === 'orchestrator' && living.has(`${root_run_id}.1`));
    tally.that(!open || excused, () => `${label}: ${run_kind} run ${run_id} is ${status} after the opening`);
    if (run_kind !== 'agent') continue;
    const { link } = facts.created.get(run_id) ?? {};
    if (link === 'remote') {
      tally.that(outcome !== 'failed:INTERRUPTED', () => `${label}: remote run ${run_id} ended as INTERRUPTED`);
    }
    const printed = said.some((line) => line.said === 'ended' && line.run_id === run_id);
    if (outcome === 'failed:INTERRUPTED') tally.note(printed ? 'closed' : 'interrupted');
  }
}

const livingIn = (facts: LedgerFacts): readonly string[] =>
  [...facts.records.values()]
    .filter(({ run_kind, status, run_id }) => run_kind === 'agent' && status === 'running' && isRemote(facts, run_id))
    .map(({ run_id }) => run_id);

const isRemote = ({ created }: LedgerFacts, run_id: string): boolean => created.get(run_id)?.link === 'remote';
