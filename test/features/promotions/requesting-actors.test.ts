// Who may vote on a request of an agent: neither its actor nor the person behind it, under no spelling of their names.
// requesting-actors.nightly.test.ts tries all spellings.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { Bench } from '../../fixtures/bench.js';
import { sized } from '../../fixtures/campaign.js';
import { codingEdit } from '../../fixtures/coding-policy.js';
import { random } from '../../fixtures/random.js';

const SAFE = { version: '1', findings: [] } as const;
/** Letters that look like others, in scripts of names. */
const ALIKE: Readonly<Record<string, string>> = {
  o: '\u043e',
  a: '\u0430',
  e: '\u0435',
  c: '\u0441',
  i: '\u0456',
  p: '\u0440',
};
const draw = random(13);

/** Another spelling of a name: other case, look-alikes, invisible characters, spaces. */
function respell(name: string): string {
  const letters = Array.from(name, (letter) => {
    const kind = Math.floor(draw() * 5);
    if (kind === 0) return letter.toUpperCase();
    if (kind === 1) return ALIKE[letter] ?? letter;
    if (kind === 2 && draw() < 0.3) return `${letter}\u200b`;
    return letter;
  });
  return draw() < 0.2 ? ` ${letters.join('')} ` : letters.join('');
}

/** A session of a coding agent, with a request of its main agent and one of a subagent. */
async function withRequests(
  work: (vote: (actor: string) => Promise<readonly string[]>) => Promise<void>,
): Promise<void> {
  const bench = await Bench.open({ edit: codingEdit, hooks: true });
  const project = join(bench.folder, 'project');
  mkdirSync(project);
  const caller = { actor: 'bot-one', person: 'otto', role: 'CODING_AGENT', lane: 'CODING', case: 'case-1', project };
  const head = { session_id: 's', cwd: project, hook_event_name: 'PreToolUse', tool_name: 'Bash' };
  for (const agent of [{}, { agent_id: 'sub-1' }]) {
    const input = { tool_input: { command: 'git push' }, tool_use_id: `t${Object.keys(agent).length}` };
    await bench.turnpike.hooks?.answer('claude-code', { ...head, ...agent, ...input }, caller, SAFE);
  }
  const vote = async (actor: string): Promise<readonly string[]> => {
    const rules: string[] = [];
    for await (const { run_id, digest } of bench.turnpike.ledger.approvals(new Date(bench.clock.now()).toISOString())) {
      const ballot = { run: run_id, digests: [digest], decision: 'approve', actor, role: 'ATTORNEY_ADMIN' } as const;
      const results = await bench.turnpike.approve(ballot);
      // Nothing proves who votes.
      for (const { reminder } of results) expect(reminder).toBe(true);
      rules.push(...results.map(({ rule_id }) => rule_id));
    }
    return rules;
  };
  await work(vote);
  await bench.close();
}

test('C87: neither the actor of a run nor its person votes on its requests, however they are written', async () => {
  await withRequests(async (vote) => {
    for (const name of ['bot-one', 'BOT-ONE', 'b\u043et-one', ' bot-one', 'otto', 'OTTO', '\u043ett\u043e'])
      for (const rule of await vote(name))
        expect([name, rule]).toEqual([name, expect.stringMatching(/^approval\.(?:by_requester|look_alike)$/)]);
    expect(await vote('anna')).toEqual(['approval.granted', 'approval.granted']);
  });
});

/** A session of its own for each: a vote is recorded, so long sessions take long to read. */
const BATCHES = Array.from({ length: sized(1, 50) }, (_, batch) => batch);
const SPELLINGS = 40;

test.each(BATCHES)('C87: no spelling of the actor or its person votes on its requests: batch %s', async () => {
  await withRequests(async (vote) => {
    for (let n = 0; n < SPELLINGS; n += 1) {
      const name = respell(n % 2 === 0 ? 'bot-one' : 'otto');
      for (const rule of await vote(name))
        expect([name, rule]).toEqual([name, expect.stringMatching(/^approval\.(?:by_requester|look_alike)$/)]);
    }
  });
});
