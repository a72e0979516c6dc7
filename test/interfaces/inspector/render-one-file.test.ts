// The page as one file: the embedded data is read back unchanged, no content can end its element, and what is too
// large, erased or withheld is omitted.

import { afterEach, expect, test } from '@jest/globals';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { InlineFeed } from '../../../src/interfaces/inspector/page/data/inline-feed.js';
import type { InspectorSource } from '../../../src/interfaces/inspector/inspector-source.js';
import { homeInspectorSource, inspectedBundle } from '../../../src/interfaces/inspector/ledger-inspector-source.js';
import { renderOneFile, type InlineData } from '../../../src/interfaces/inspector/render-one-file.js';
import { turnpike as command } from '../cli/fake-io.js';
import { Bench, type BenchOptions } from '../../fixtures/bench.js';
import { proposal } from '../../fixtures/tree.js';

const TEMPLATE = '<html><script type="application/json" id="turnpike-data"></script><script>page</script></html>';
const SECRET = 'said in confidence';
/** A file name that would end its element, and begin another one. */
const HOSTILE = '<script>alert(1)<!--\u2028.jsonl';

let bench: Bench;
let source: InspectorSource;
const opened = async (options?: BenchOptions): Promise<void> => {
  bench = await Bench.open(options);
};
afterEach(async () => {
  await source.close();
  await bench.turnpike.close();
  rmSync(bench.folder, { recursive: true });
});

async function worked(case_id: string, content = SECRET): Promise<string> {
  const agent = await bench.turnpike.startAgent({ case: case_id });
  await agent.submit(JSON.stringify(proposal('WRITE_FILE', { path: '/sandbox/a.md', content })));
  await agent.end();
  return agent.run_id;
}

const dataIn = (html: string): InlineData => {
  const [, json = ''] = /id="turnpike-data">([^<]*)<\/script>/.exec(html) ?? [];
  return JSON.parse(json) as InlineData;
};

/**
 * The data in the file for the bundle of the home directory. Checks that it contains all entries, and that the file has
 * only the elements of its template.
 */
async function exported(): Promise<InlineData> {
  const size = await bench.turnpike.ledger.size();
  await bench.turnpike.close();
  const bundle = join(bench.folder, HOSTILE);
  expect(await command(bench.folder, ['ledger', 'export', bundle, '--home', bench.home])).toMatchObject({ code: 0 });
  ({ source } = await inspectedBundle(bundle, null));
  const html = await renderOneFile(TEMPLATE, source, { maxBytes: 1e7 });
  expect(html.match(/</g)).toHaveLength(TEMPLATE.match(/</g)?.length ?? 0);
  const data = dataIn(html);
  expect([data.info.title, data.entries.length]).toEqual([HOSTILE, size]);
  return data;
}

test('contains what the page requests, byte for byte', async () => {
  await opened();
  const run_id = await worked('case-kept');
  source = homeInspectorSource(bench.turnpike.ledger, null);
  const feed = new InlineFeed(dataIn(await renderOneFile(TEMPLATE, source, { maxBytes: 1e7 })));
  const { size } = await source.info();
  expect(await feed.info()).toMatchObject({ size, live: false, approvals: false });
  expect(await feed.entries(0, size)).toEqual(await source.entries(0, size));
  expect((await feed.rows(1, 3)).rows).toHaveLength(2);
  const course = await source.course(run_id, 0);
  const [proposed = 0] = course?.steps ?? [];
  const event = await source.event(proposed);
  expect(await feed.event(proposed)).toEqual(event);
  const { sha256 } = event!.artifacts[0]!;
  expect(Buffer.from((await feed.artifact(proposed, sha256))!).toString()).toContain(SECRET);
  expect([await feed.course(run_id), await feed.step(run_id, 1)]).toEqual([course, await source.step(run_id, 1)]);
  expect(await feed.chart(course!.chart)).toEqual(await source.chart(course!.chart));
  expect([await feed.event(size), await feed.course('run_b'), await feed.why(size)]).toEqual([null, null, null]);
});

test('omits content before entries if the file is too large, and refuses entries that do not fit', async () => {
  await opened();
  await worked('case-kept', 'x'.repeat(50_000));
  source = homeInspectorSource(bench.turnpike.ledger, null);
  const whole = await renderOneFile(TEMPLATE, source, { maxBytes: 1e7 });
  const maxBytes = Buffer.byteLength(whole) - 40_000;
  const cut = await renderOneFile(TEMPLATE, source, { maxBytes });
  expect(Buffer.byteLength(cut)).toBeLessThan(maxBytes);
  expect(dataIn(cut).entries).toEqual(dataIn(whole).entries);
  expect(Object.keys(dataIn(cut).artifacts).length).toBeLessThan(Object.keys(dataIn(whole).artifacts).length);
  await expect(renderOneFile(TEMPLATE, source, { maxBytes: 900 })).rejects.toThrow('entries alone');
  await expect(renderOneFile('<html></html>', source, { maxBytes: 1e6 })).rejects.toThrow('template');
});

test('D14: contains only the entries of an erased case, and everything of the others', async () => {
  await opened();
  const [gone, kept] = [await worked('case-gone'), await worked('case-kept')];
  await bench.turnpike.erase({ case: 'case-gone', actor: 'a person' });
  const data = await exported();
  expect(JSON.stringify(data)).not.toContain(Buffer.from(SECRET).toString('base64').slice(0, 16));
  expect(Object.keys(data.steps)).toContain(`${kept}/1`);
  expect(Object.keys(data.whys).length).toBeGreaterThan(0);
  expect(await new InlineFeed(data).step(gone, 1)).toBeNull();
});

test('contains the entries of a lane that withholds content', async () => {
  await opened({
    edit: (name, text) =>
      name === 'lanes' ? text.replace('  - lane_id: SANDBOX_FILES\n', '$&    withholds_content: true\n') : text,
  });
  await worked('case-kept');
  const data = await exported();
  const details = Object.values(data.events).flatMap(({ artifacts }) => artifacts);
  expect(details.filter(({ withheld }) => withheld === 'lane').map(({ kind }) => kind)).toContain('raw_payload');
});
