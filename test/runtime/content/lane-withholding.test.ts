// Content that a lane withholds from bundles, and that appears again in content of others.

import { afterEach, expect, test } from '@jest/globals';
import { isWithheld } from '../../../src/core/contract/artifact-ref.js';
import { homePaths, openHome } from '../../../src/home/home.js';
import { withholdByLanes } from '../../../src/runtime/content/lane-withholding.js';
import { Bench } from '../../fixtures/bench.js';

const SECRET = 'what the tool had to say, in confidence';
let bench: Bench;
afterEach(() => bench.close());

const READS = `  - lane_id: FILE_READS
    purpose: Read files.
    allowed_callers: { roles: [SANDBOX_AGENT] }
    allowed_actions: { tools: [sandbox.read_file] }
    scope: { requires: [case_id, run_id], prohibits: [] }
    audit: { required: true, level: full }
`;

/** Reading has a lane of its own. One of the two lanes withholds. */
const edit = (withholding: string) => (name: string, text: string) =>
  name === 'actions'
    ? text
        .replace('  - action: READ_FILE\n', '$&    lane: FILE_READS\n')
        .replace(/duplicate_proposal_ids: \w+/, 'duplicate_proposal_ids: replay')
    : name === 'lanes'
      ? text
          .replace('  - lane_id: SANDBOX_FILES\n', `${READS}$&`)
          .replace(`  - lane_id: ${withholding}\n`, '$&    withholds_content: true\n')
      : text.replace('lanes: [SANDBOX_FILES]', 'lanes: [SANDBOX_FILES, FILE_READS]');

const proposal = (id: number, action: string, args: object): string =>
  JSON.stringify({
    schema_version: '1.0.0',
    id: `00000000-0000-4000-8000-${String(id).padStart(12, '0')}`,
    reasoning: 'r',
    action,
    args,
  });

/** The kinds of case content that a bundle contains with the secret, and those that it withholds. */
async function bundled(): Promise<{ readonly told: readonly string[]; readonly kept: readonly string[] }> {
  const { store } = openHome(homePaths(bench.home), { readOnly: true });
  const source = withholdByLanes(store);
  const included: string[] = [];
  const withheld: string[] = [];
  for await (const stored of source.log()) {
    for (const artifact of await source.artifactsOf(stored)) {
      if (isWithheld(artifact)) withheld.push(artifact.kind);
      else if (Buffer.from(artifact.bytes).includes(SECRET)) included.push(artifact.kind);
    }
  }
  await store.close();
  return { told: included, kept: withheld };
}

async function readTwice(): Promise<void> {
  bench.put('a.txt', SECRET);
  const agent = await bench.turnpike.startAgent();
  const read = proposal(1, 'READ_FILE', { path: '/sandbox/a.txt' });
  expect(await agent.submit(read)).toMatchObject({ outcome: 'SUCCESS' });
  // A repeated request gets the same response.
  expect(await agent.submit(read)).toMatchObject({ outcome: 'SUCCESS' });
  await agent.end();
}

test('S4-62: a repeated response is withheld like the result that it derives from', async () => {
  bench = await Bench.open({ edit: edit('FILE_READS') });
  await readTwice();
  const { told, kept } = await bundled();
  expect(told).toEqual([]);
  expect(kept).toContain('result');
});

test('S4-62: what an agent of such a lane does in another lane is withheld, too', async () => {
  bench = await Bench.open({ edit: edit('SANDBOX_FILES') });
  await readTwice();
  expect((await bundled()).told).toEqual([]);
});
