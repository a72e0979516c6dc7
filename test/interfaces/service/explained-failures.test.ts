// Where people read why a step failed: the commands, the inspector and the contents that a reading records (C94).

import { afterAll, beforeAll, expect, test } from '@jest/globals';
import Type from 'typebox';
import { ActionFailedError } from '../../../src/core/errors.js';
import type { AgentRun } from '../../../src/runtime/agents/agent-run.js';
import { defineTool } from '../../../src/runtime/effects/define-effects.js';
import { listStepContents } from '../../../src/interfaces/http/routes/ledger-audit.js';
import { homeInspectorSource } from '../../../src/interfaces/inspector/ledger-inspector-source.js';
import type { InspectorSource } from '../../../src/interfaces/inspector/inspector-source.js';
import { turnpike as command } from '../cli/fake-io.js';
import { Bench } from '../../fixtures/bench.js';
import { CASE_AGENT, serviceEdit } from '../../fixtures/service.js';
import { proposal } from '../../fixtures/tree.js';

const closed = { additionalProperties: false } as const;
const WHY = 'args.input.amount: must be <= 100';
const WORDS = 'The account is closed.';

const refund = defineTool({
  name: 'billing.charge',
  input: Type.Object({ amount: Type.Integer({ maximum: 100 }) }, closed),
  output: Type.Object({}, closed),
  run: ({ amount }) => {
    if (amount === 1) throw new ActionFailedError(WORDS);
    return {};
  },
});

const call = (amount: number): string =>
  JSON.stringify(proposal('CALL_TOOL', { tool: 'billing.charge', input: { amount } }));

let bench: Bench;
let source: InspectorSource;
let agent: AgentRun;
const responses: string[] = [];

beforeAll(async () => {
  bench = await Bench.open({
    tools: [refund],
    edit: (name, text) => serviceEdit(name, text).replace('exposure: detailed', 'exposure: explained'),
  });
  agent = await bench.turnpike.startAgent(CASE_AGENT);
  for (const amount of [101, 1, 2]) responses.push(await agent.respond(call(amount)));
  await agent.end();
  source = homeInspectorSource(bench.turnpike.ledger, bench.turnpike.home);
});
afterAll(async () => {
  await source.close();
  await bench.close();
});

test('the inspector gets the reason of a step, and its response byte for byte', async () => {
  const stories = await Promise.all([1, 2, 3].map((step) => source.step(agent.run_id, step)));
  expect(stories.map((story) => story?.explanation)).toEqual([WHY, undefined, undefined]);
  expect(stories.map((story) => story?.response)).toEqual(responses);
});

test('a reader of a response has read its payload, and the result or the words of the tool', async () => {
  const lists = await Promise.all(
    [1, 2, 3].map(async (step) => listStepContents((await source.step(agent.run_id, step))!, bench.turnpike.ledger)),
  );
  const kinds = await Promise.all(
    lists.map(async (list) =>
      Promise.all(
        list.map(async ({ log_index, sha256 }) => {
          const event = await source.event(log_index);
          return event?.artifacts.find((artifact) => artifact.sha256 === sha256)?.kind;
        }),
      ),
    ),
  );
  expect(kinds).toEqual([['raw_payload'], ['raw_payload', 'explanation'], ['raw_payload', 'result']]);
});

test('`turnpike runs RUN` and its JSON name the field and the constraint, and no word of the tool', async () => {
  const text = await command(bench.folder, ['runs', agent.run_id, '--home', bench.home]);
  expect(text.stdout).toContain(WHY);
  const json = await command(bench.folder, ['runs', agent.run_id, '--json', '--home', bench.home]);
  const { steps } = JSON.parse(json.stdout) as { readonly steps: readonly unknown[] };
  expect(steps).toMatchObject([
    { explanation: WHY, cause: 'ARGUMENT' },
    { cause: 'FAILED', explanation_ref: { artifact_kind: 'explanation' } },
    { outcome: 'SUCCESS' },
  ]);
  expect(json.stdout).not.toContain(WORDS);
});
