// The page's proof of ledgers without a service: tampered copies, bundles, and the single-file page opened from the
// disk.

import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type Database from 'better-sqlite3';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { winstonLog } from '../../../../../src/system/winston-log.js';
import { homePaths, openHome } from '../../../../../src/home/home.js';
import { leafHash } from '../../../../../src/core/ledger/proof/merkle.js';
import { LedgerReader } from '../../../../../src/runtime/ledger/ledger-reader.js';
import { serveSource } from '../../../../../src/interfaces/http/serve-source.js';
import {
  homeInspectorSource,
  inspectedBundle,
} from '../../../../../src/interfaces/inspector/ledger-inspector-source.js';
import { renderOneFile } from '../../../../../src/interfaces/inspector/render-one-file.js';
import type { InspectorSource } from '../../../../../src/interfaces/inspector/inspector-source.js';
import { dropGuards, withDatabase } from '../../../../stores/sqlite/sqlite-harness.js';
import { turnpike } from '../../../cli/fake-io.js';
import { inChromium, presentPage, presentTemplate, Tab, withBrowser, type Opening } from './browser.js';
import { Stage } from './stage.js';

const FILE_BYTES_MAX = 64 * 1_048_576;

inChromium('the page on a ledger at rest', () => {
  withBrowser();
  let stage: Stage;
  let mixture = '';
  let bundle = '';
  let denied = 0;
  let session = '';
  let begun = 0;
  beforeAll(async () => {
    stage = await Stage.open();
    mixture = await stage.agentOf('case-mixture');
    denied = await stage.find((text) => text.includes('"outcome":"DENIED"') && text.includes(mixture));
    session = (await stage.agentOf('case-handbook')).split('.')[0] ?? '';
    begun = await stage.find((text) => text.includes(`"tree_id":"${session}"`));
    bundle = join(stage.folder, 'bundle.jsonl');
    await stage.server.close();
    await stage.turnpike.close();
    const { code, stderr } = await turnpike(stage.folder, ['ledger', 'export', bundle, '--home', stage.home]);
    expect([code, stderr]).toEqual([0, expect.any(String)]);
  });
  afterAll(() => rmSync(stage.folder, { recursive: true, force: true }));

  /** Opens a ledger that no process writes, and displays it. */
  async function looked(source: InspectorSource, view: string, look: (tab: Tab) => Promise<void>, how?: Opening) {
    const server = await serveSource({ source, page: await presentPage(), port: 0, log: winstonLog('silent') });
    try {
      const tab = await Tab.open(`${server.url}/#token=${server.token}&${view}`, how);
      await look(tab);
      await tab.close();
    } finally {
      await server.close();
      await source.close();
    }
  }

  /** A copy of the home in which the text of one entry was changed. */
  function tampered(entry: number, change: (text: string) => string): InspectorSource {
    const paths = homePaths(stage.copied());
    withDatabase(paths.ledger, (db) => {
      dropGuards(db);
      changeEntry(db, entry, change);
    });
    const { store, externalHeadStore } = openHome(paths, { readOnly: true });
    return homeInspectorSource(new LedgerReader(store, externalHeadStore), paths, false);
  }

  test('one changed entry is shown as broken at its place, and nothing after it as verified', async () => {
    const source = tampered(denied, (text) => text.replace('"outcome":"DENIED"', '"outcome":"SUCCESS"'));
    await looked(source, `run=${mixture}`, async (tab) => {
      await tab.see('.badge', `Chain broken at @${denied}`);
      // A home that is opened read-only accepts no votes.
      expect(await tab.page.getByRole('link', { name: 'Approvals' }).count()).toBe(0);
      await tab.page.locator('.badge').click();
      await tab.see('.popover', `Entry @${denied}`);
      await tab.see('.details', '✕');
      expect(await tab.page.getAttribute('[role="slider"]', 'aria-valuenow')).toBe(String(denied));
      await tab.view('tampered-light');
      await tab.page.keyboard.press('Escape');
      const marked = await tab.page.locator('[role="row"].unverified .number').allTextContents();
      const whole = await tab.page.locator('[role="row"]:not(.unverified) .number').allTextContents();
      expect(Math.min(...marked.map(Number))).toBe(denied);
      expect(Math.max(...whole.map(Number))).toBe(denied - 1);
    });
  });

  test('an exported bundle is shown without the home, read-only, and proved up to its checkpoint', async () => {
    await looked((await inspectedBundle(bundle, null)).source, `run=${mixture}&step=16&tab=step`, async (tab) => {
      await tab.see('.connection', 'File, read-only');
      await tab.see('.badge', 'Chain verified');
      await tab.see('.chart [data-state="EXECUTE"]');
      expect(await tab.page.getByRole('link', { name: 'Approvals' }).count()).toBe(0);
      await tab.page.locator('.badge').click();
      await tab.see('.popover', 'its signature is valid, the root matches');
      await tab.view('bundle-light');
    });
  });

  test('a changed bundle is opened flagged: the stored text, both hashes, what is still provable, and nothing as verified', async () => {
    const lines = readFileSync(bundle, 'utf8').split('\n');
    const place = lines.findIndex((line) => line.includes('\\"outcome\\":\\"DENIED\\"') && line.includes(mixture));
    const text = (line = ''): string => (JSON.parse(line) as { readonly entry: string }).entry;
    const changed = (lines[place] ?? '').replace('\\"outcome\\":\\"DENIED\\"', '\\"outcome\\":\\"SUCCESS\\"');
    const path = join(stage.folder, 'changed.jsonl');
    writeFileSync(path, lines.with(place, changed).join('\n'));
    const { source, flaw } = await inspectedBundle(path, null);
    expect(flaw).not.toBeNull();
    const at = place - 1;
    await looked(source, `run=${mixture}&list=all&at=${at}`, async (tab) => {
      await tab.see('.banner', 'Nothing on this page is verified');
      await tab.see('.badge.broken', `Chain broken at @${at}`);
      await tab.see('.changed', 'This text is not what the ledger recorded');
      await tab.see('.changed dd', leafHash(text(lines[place])));
      await tab.see('.changed dd', leafHash(text(changed)));
      await tab.see('.changed', `Still provable: all entries except @${at}`);
      await tab.see('.changed .untrusted', '"outcome":"SUCCESS"');
      const claims = async (): Promise<number> => tab.page.locator('.strong.h-completed, .badge.verified').count();
      expect(await claims()).toBe(0);
      await tab.view('changed-light');
      // Nor is any other entry, or its content, shown as verified.
      for (const key of ['k', 'k', 'k', 'j', '3', '4', 'Home', 'End']) {
        await tab.page.keyboard.press(key);
        await tab.stands();
        expect([key, await claims(), (await tab.text('body')).includes('✓ verified')]).toEqual([key, 0, false]);
      }
      await tab.page.locator('.badge').click();
      await tab.see('.popover', 'Still provable');
      await tab.view('changed-proof-light');
    });
  });

  test('the page with an embedded bundle opens from the disk without a service, and shows and proves the same', async () => {
    const { source } = await inspectedBundle(bundle, null);
    const html = join(stage.folder, 'page.html');
    writeFileSync(html, await renderOneFile(await presentTemplate(), source, { maxBytes: FILE_BYTES_MAX }));
    await source.close();
    const tab = await Tab.open(`${pathToFileURL(html).href}#run=${mixture}&step=16&tab=step`, { scheme: 'dark' });
    await tab.see('.connection', 'File, read-only');
    await tab.see('.badge', 'Chain verified');
    await tab.see('.rail .outcome', /DENIED|SUCCESS|ERROR/);
    await tab.see('.chart [data-state="EXECUTE"]');
    await tab.page.keyboard.press('3');
    // Content of a local file is shown at once.
    await tab.see('.story .untrusted');
    await tab.view('one-file-dark');
    await tab.page.keyboard.press('4');
    await tab.see('.waterfall .bar');
    await tab.close();
    // Of a session the file contains only the end, and says so at any other position.
    const past = await Tab.open(`${pathToFileURL(html).href}#run=${session}&tab=session&at=${begun}`);
    await past.see('.session [role="note"]', /only as of @\d+: the shown state is later/);
    await past.see('.session .phases', 'gate');
    await past.view('one-file-session-past-light');
    await past.page.keyboard.press('l');
    await past.until(() => past.page.locator('.session [role="note"]').count(), 0);
    await past.see('.session .phases', 'gate');
    await past.close();
    // Invalid hashes of the entries before the bundle are reported without waiting.
    const wrong = join(stage.folder, 'wrong.html');
    writeFileSync(wrong, readFileSync(html, 'utf8').replace('"frontier":[]', '"frontier":["00"]'));
    const broken = await Tab.open(`${pathToFileURL(wrong).href}#run=${mixture}`);
    await broken.see('.badge.broken', 'Chain broken at its start');
    await broken.page.locator('.badge').click();
    await broken.see('.popover', 'nothing after them can be proved');
    await broken.see('.details', 'cannot be verified');
    await broken.view('one-file-broken-light');
    await broken.close();
  });
});

/** Entries are stored in blocks, one per line. */
function changeEntry(db: Database.Database, entry: number, change: (text: string) => string): void {
  const find = db.prepare('SELECT log_index, texts FROM blocks WHERE log_index <= ? ORDER BY log_index DESC LIMIT 1');
  const block = find.get(entry) as { readonly log_index: number; readonly texts: string };
  const lines = block.texts.split('\n');
  const at = entry - block.log_index;
  const changed = change(lines[at] ?? '');
  if (changed === lines[at]) throw new Error('nothing was changed');
  db.prepare('UPDATE blocks SET texts = ? WHERE log_index = ?').run(
    lines.with(at, changed).join('\n'),
    block.log_index,
  );
}
