// The built page: its size, its content security policy, and the absence of foreign addresses.

import { beforeAll, expect, test } from '@jest/globals';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { tempFolder } from '../../../fixtures/temp-folder.js';
import { filesIn, ROOT, textOf } from '../../../sources.js';

const GZIP_BYTES_MAX = 66_500;
const folder = tempFolder('page');
const read = (name: string): string => readFileSync(join(folder, name), 'utf8');
let assets: readonly string[] = [];

beforeAll(async () => {
  await promisify(execFile)(process.execPath, [join(ROOT, 'tools/build/bundle-page.mjs'), folder], { cwd: ROOT });
  assets = readdirSync(join(folder, 'assets')).map((name) => `assets/${name}`);
});

const PAGES = ['index.html', 'approvals.html'];

/** The files that a page loads: those that it names, and those that they name. */
function loadedBy(name: string, found = new Set([name])): ReadonlySet<string> {
  for (const other of assets) {
    if (found.has(other) || !read(name).includes(other.replace('assets/', ''))) continue;
    found.add(other);
    loadedBy(other, found);
  }
  return found;
}

test.each(PAGES)(`all files of a visit of %s have fewer than ${GZIP_BYTES_MAX} bytes compressed`, (page) => {
  const sizes = [...loadedBy(page)].map((name) => gzipSync(read(name), { level: 9 }).length);
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  expect(bytes).toBeGreaterThan(10_000);
  expect(bytes).toBeLessThan(GZIP_BYTES_MAX);
});

test('every asset belongs to a page, and the pages load their own program', () => {
  expect(new Set(PAGES.flatMap((page) => [...loadedBy(page)]))).toEqual(new Set([...PAGES, ...assets]));
  expect([...loadedBy('index.html')].filter((name) => name.includes('approvals'))).toEqual([]);
});

test('the page has no inline script or style, and creates no markup from text', () => {
  for (const page of PAGES) expect(read(page)).not.toMatch(/<script(?![^>]*\ssrc=)|<style|\son\w+=|\sstyle=/);
  for (const name of assets.filter((one) => one.endsWith('.js'))) {
    expect(read(name)).not.toMatch(/\beval\(|new Function\(|insertAdjacentHTML|document\.write/);
  }
  // Preact can do so if it is instructed to.
  const markup = /innerHTML|outerHTML|dangerously|DOMParser|createContextualFragment/i;
  expect(filesIn('src/interfaces/inspector/page', /\.tsx?$/).filter((path) => markup.test(textOf(path)))).toEqual([]);
});

test('no file names the folder of the build', () => {
  for (const name of [...PAGES, 'one-file.html', ...assets]) expect(read(name).includes(ROOT)).toBe(false);
});

test('every address in it refers to one of its own files', () => {
  for (const name of [...PAGES, 'one-file.html', ...assets]) {
    const addresses = read(name).match(/\b(?:https?:)?\/\/[a-z][\w.-]+\.[a-z]{2,}[^\s"'`)]*/g) ?? [];
    // Names of vocabularies, which are never fetched.
    expect(addresses.filter((address) => !/^http:\/\/www\.w3\.org\//.test(address))).toEqual([]);
  }
});

test('the policy of the one-file page permits exactly its own script and style', () => {
  const html = read('one-file.html');
  const [, policy = ''] = /Content-Security-Policy" content="([^"]*)"/.exec(html) ?? [];
  const [, script = ''] = /<script>([\s\S]*)<\/script>/.exec(html) ?? [];
  const [, style = ''] = /<style>([\s\S]*?)<\/style>/.exec(html) ?? [];
  const hash = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
  expect(policy).toContain("default-src 'none'");
  expect(policy).toContain(`script-src ${hash(script)};`);
  expect(policy).toContain(`style-src ${hash(style)};`);
  expect(policy).not.toMatch(/unsafe|connect-src|\*/);
  expect(html.match(/id="turnpike-data"><\/script>/g)).toHaveLength(1);
});
