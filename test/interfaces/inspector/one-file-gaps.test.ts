// The page as one file, from bundles with erased or withheld content.

import { afterEach, expect, test } from '@jest/globals';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { InlineFeed, type InlineData } from '../../../src/interfaces/inspector/page/data/inline-feed.js';
import { bundleInspectorSource } from '../../../src/interfaces/inspector/ledger-inspector-source.js';
import { renderOneFile } from '../../../src/interfaces/inspector/render-one-file.js';
import { turnpike as command } from '../cli/fake-io.js';
import { Bench } from '../../fixtures/bench.js';
import { proposal } from '../../fixtures/tree.js';

const TEMPLATE = '<script type="application/json" id="turnpike-data"></script>';
const SECRET = 'said in confidence';

let bench: Bench;
afterEach(() => rmSync(bench.folder, { recursive: true }));

async function worked(case_id: string): Promise<string> {
  const agent = await bench.turnpike.startAgent({ case: case_id });
  await agent.submit(JSON.stringify(proposal('WRITE_FILE', { path: '/sandbox/a.md', content: SECRET })));
  await agent.end();
  return agent.run_id;
}

/** The data in the file for the bundle of the home directory; checks that it contains all entries. */
async function written(): Promise<InlineData> {
  const size = await bench.turnpike.ledger.size();
  await bench.turnpike.close();
  const bundle = join(bench.folder, 'bundle.jsonl');
  expect(await command(bench.folder, ['ledger', 'export', bundle, '--home', bench.home])).toMatchObject({ code: 0 });
  const source = await bundleInspectorSource(bundle, null);
  try {
    const html = await renderOneFile(TEMPLATE, source, { maxBytes: 1e7 });
    const data = JSON.parse(html.slice(html.indexOf('>') + 1, html.lastIndexOf('<'))) as InlineData;
    expect(data.entries).toHaveLength(size);
    return data;
  } finally {
    await source.close();
  }
}

test('D14: contains only the entries of an erased case, and everything of the others', async () => {
  bench = await Bench.open();
  const [gone, kept] = [await worked('case-gone'), await worked('case-kept')];
  await bench.turnpike.erase({ case: 'case-gone', actor: 'a person' });
  const data = await written();
  expect(JSON.stringify(data)).not.toContain(Buffer.from(SECRET).toString('base64').slice(0, 16));
  expect(Object.keys(data.steps)).toContain(`${kept}/1`);
  expect(Object.keys(data.whys).length).toBeGreaterThan(0);
  expect(await new InlineFeed(data).step(gone, 1)).toBeNull();
});

test('contains the entries of a lane that withholds content', async () => {
  bench = await Bench.open({
    edit: (name, text) =>
      name === 'lanes' ? text.replace('  - lane_id: SANDBOX_FILES\n', '$&    withholds_content: true\n') : text,
  });
  await worked('case-kept');
  const data = await written();
  const details = Object.values(data.events).flatMap(({ artifacts }) => artifacts);
  expect(details.filter(({ withheld }) => withheld === 'lane').map(({ kind }) => kind)).toContain('raw_payload');
});
