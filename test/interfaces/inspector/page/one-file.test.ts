// The page as one file: the embedded data is read back unchanged, and no content can end its element.

import { describe, expect, test } from '@jest/globals';
import { packRows, toEventRow } from '../../../../src/interfaces/inspector/contract/event-row.js';
import type { Course } from '../../../../src/core/contract/inspection/inspection.js';
import { InlineFeed, type InlineData } from '../../../../src/interfaces/inspector/page/data/inline-feed.js';
import { leafHash } from '../../../../src/core/ledger/proof/merkle.js';
import { toHtmlSafeJson, renderOneFile } from '../../../../src/interfaces/inspector/render-one-file.js';
import type { InspectorSource } from '../../../../src/interfaces/inspector/inspector-source.js';
import { NO_WHYS } from '../../../fixtures/ledger-source.js';

const HOSTILE = '</script><script>alert(1)</script><!--\u2028';
const TEMPLATE = '<html><script type="application/json" id="turnpike-data"></script><script>page</script></html>';

const entry = (seq: number, kind: string): string =>
  JSON.stringify({
    body: { kind, run_id: 'run_a', time: '2026-11-22T10:00:00.000Z', said: HOSTILE },
    prev: '0'.repeat(64),
    seq,
    tree_id: 'run_a',
    type: 'input',
  });
const TEXTS = [entry(0, 'open'), entry(1, 'proposal'), entry(2, 'end')];
const COURSE: Course = {
  run_id: 'run_a',
  tree_id: 'run_a',
  through: 3,
  chart: 'c',
  step_chart: null,
  edges: [],
  states: [],
  moves: [],
  steps: [1],
  cut: null,
};

/** A log of three entries, the second of which has content. */
const source = (content: Uint8Array): InspectorSource => ({
  info: () =>
    Promise.resolve({
      ledger_id: 'x',
      begin: 0,
      size: 3,
      checkpoint: null,
      key: null,
      frontier: [],
      live: true,
      approvals: true,
      title: HOSTILE,
    }),
  replayed: () => Promise.resolve({ verdict: 'by_hash_alone', notes: ['1 run tree: a lane withholds content'] }),
  size: () => Promise.resolve(3),
  rows: (from, to) =>
    Promise.resolve(packRows(TEXTS.map((text, at) => toEventRow(text, at, leafHash(text))).slice(from, to))),
  // A service returns as many entries as it chooses to.
  entries: (from) => Promise.resolve(TEXTS.slice(from, from + 2)),
  event: (log_index) => {
    const text = TEXTS[log_index] ?? '';
    const artifact = { sha256: 'ab', kind: 'raw_payload', case_id: null, byte_size: content.length, withheld: null };
    const artifacts = log_index === 1 ? [artifact] : [];
    return Promise.resolve({ log_index, text, leaf_hash: leafHash(text), artifacts });
  },
  artifact: () => Promise.resolve(content),
  course: () => Promise.resolve(COURSE),
  chart: () => Promise.resolve(null),
  step: (run_id, step) =>
    Promise.resolve({ run_id, step, proposal: 1, trace: null, response: HOSTILE, decision: null }),
  why: () => Promise.resolve(null),
  coverage: (from, to) => Promise.resolve({ from, to, not_recomputed: 0, policies: [] }),
  whys: () => NO_WHYS,
  session: () => Promise.resolve(null),
  close: () => Promise.resolve(),
});

const CONTENT = new TextEncoder().encode('{"reasoning":"…"}');
const dataIn = (html: string): InlineData => {
  const [, json = ''] = /id="turnpike-data">([^<]*)<\/script>/.exec(html) ?? [];
  return JSON.parse(json) as InlineData;
};

describe('the one-file page', () => {
  test('contains what the page requests, byte for byte', async () => {
    const html = await renderOneFile(TEMPLATE, source(CONTENT), { maxBytes: 1e6 });
    const feed = new InlineFeed(dataIn(html));
    expect(await feed.info()).toMatchObject({ size: 3, live: false, title: HOSTILE });
    expect(await feed.entries(0, 3)).toEqual(TEXTS);
    expect((await feed.rows(1, 3)).rows).toHaveLength(2);
    expect(await feed.event(1)).toMatchObject({ text: TEXTS[1], leaf_hash: leafHash(TEXTS[1] ?? '') });
    expect(await feed.artifact(1, 'ab')).toEqual(CONTENT);
    expect(await feed.course('run_a')).toEqual(COURSE);
    expect(await feed.step('run_a', 1)).toMatchObject({ response: HOSTILE });
    expect([await feed.event(9), await feed.course('run_b'), await feed.why(0)]).toEqual([null, null, null]);
  });

  test('has only the elements of its template, whatever an agent wrote', async () => {
    const html = await renderOneFile(TEMPLATE, source(CONTENT), { maxBytes: 1e6 });
    expect(html.match(/</g)).toHaveLength(TEMPLATE.match(/</g)?.length ?? 0);
    expect(JSON.parse(toHtmlSafeJson(HOSTILE))).toBe(HOSTILE);
  });

  test('omits content before entries if the file is too large, and refuses entries that do not fit', async () => {
    const much = await renderOneFile(TEMPLATE, source(new Uint8Array(50_000)), { maxBytes: 20_000 });
    expect(much.length).toBeLessThan(20_000);
    expect(await new InlineFeed(dataIn(much)).artifact(1, 'ab')).toBe(null);
    expect(await new InlineFeed(dataIn(much)).entries(0, 3)).toEqual(TEXTS);
    await expect(renderOneFile(TEMPLATE, source(CONTENT), { maxBytes: 900 })).rejects.toThrow('entries alone');
    await expect(renderOneFile('<html></html>', source(CONTENT), { maxBytes: 1e6 })).rejects.toThrow('template');
  });
});
