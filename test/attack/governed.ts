// The part of the attack that runs whole governed steps: facts, verdict and action, with the attacker between each of
// them. The ledger is then searched for content from outside as well.

import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { manifestPolicySource, pinManifest } from '../../src/home/policy/manifest-policy-source.js';
import { memoryStore } from '../../src/stores/memory/memory-ledger-store.js';
import { winstonLog } from '../../src/system/winston-log.js';
import type { Sandbox } from '../../src/engine/ports/effects/sandbox.js';
import type { AgentRun } from '../../src/runtime/agents/agent-run.js';
import type { LedgerReader } from '../../src/runtime/ledger/ledger-reader.js';
import { shippedContract } from '../../src/runtime/shipped-contract.js';
import { openTurnpike } from '../../src/host/turnpike.js';
import { ManualClock } from '../fixtures/manual-clock.js';
import type { Act } from './operations.js';
import type { Outside } from './outside.js';
import { requireContent } from '../../src/core/ledger/require-content.js';

export interface Governed {
  /** Proposes an action. @returns the response, as the agent sees it */
  step(act: Act): Promise<string>;
  /**
   * Closes everything. @returns the failures of the ledger: it does not verify or replay, or shows content from outside
   */
  close(outside: Outside): Promise<readonly string[]>;
}

/** The shipped policy, except that no number of denials ends an agent. */
export function writeContract(folder: string): void {
  mkdirSync(folder, { recursive: true });
  cpSync(join(shippedContract(), 'policy'), join(folder, 'policy'), { recursive: true });
  const actions = join(folder, 'policy/actions.yaml');
  const text = readFileSync(actions, 'utf8');
  writeFileSync(actions, text.replace(/denials_per_run_max: \d+/, 'denials_per_run_max: 1000000'));
  const files = ['lanes', 'roles', 'actions'].map((name) => {
    const path = `policy/${name}.yaml`;
    return { path, bytes: readFileSync(join(folder, path)), pin: { problem: 'never_committed' as const } };
  });
  writeFileSync(join(folder, 'pins.json'), JSON.stringify(pinManifest(files)));
}

export async function openGoverned(contract: string, sandbox: Sandbox, case_id: string): Promise<Governed> {
  const store = memoryStore();
  const turnpike = await openTurnpike({
    store,
    sandbox,
    policies: manifestPolicySource(contract),
    clock: new ManualClock(),
    log: winstonLog('silent'),
  });
  const agent: AgentRun = await turnpike.startAgent({ case: case_id });
  let proposals = 0;
  return {
    step({ action, args }) {
      proposals += 1;
      const id = `00000000-0000-4000-8000-${String(proposals).padStart(12, '0')}`;
      return agent.respond(JSON.stringify({ schema_version: '1.0.0', id, reasoning: 'Attacked.', action, args }));
    },
    async close(outside) {
      await agent.end();
      const verified = await turnpike.ledger.verify();
      const replayed = await turnpike.replay();
      const seen = await seenIn(turnpike.ledger, outside);
      await turnpike.close();
      return [
        ...seen,
        ...(verified.ok ? [] : ['the ledger does not verify']),
        ...(replayed.ok ? [] : [`the ledger does not replay: ${JSON.stringify(replayed.difference)}`]),
      ];
    },
  };
}

/** Whether the ledger contains anything from outside. */
async function seenIn(ledger: LedgerReader, outside: Outside): Promise<readonly string[]> {
  const seen: string[] = [];
  for await (const stored of ledger.log()) {
    const contents = requireContent(await ledger.artifactsOf(stored)).map(({ bytes }) => Buffer.from(bytes).toString());
    for (const each of [stored.text, ...contents]) {
      const what = outside.seenIn(each);
      if (what !== null) seen.push(`in the ledger: ${what}`);
    }
  }
  return seen;
}
