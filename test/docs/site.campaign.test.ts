// The documentation site, built as `npm run docs` builds it.

import { beforeAll, describe, expect, test } from '@jest/globals';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { filesIn, ROOT } from '../sources.js';
import { entryPoints } from './api-report.js';

const SITE = join(ROOT, 'dist/docs');

describe('npm run docs', () => {
  let output = '';

  // It fails on a dead link and on an exported symbol without a comment.
  beforeAll(async () => {
    const { stdout } = await promisify(execFile)(process.execPath, [join(ROOT, 'site/build.mjs')], { cwd: ROOT });
    output = stdout;
  }, 600_000);

  test('finds no problem', () => {
    expect(output).toMatch(/^docs: \d+ pages in dist\/docs in \d+ s, 0 problems$/m);
  });

  test('builds every page of the repository', () => {
    const pages = filesIn('docs', /\.md$/).filter((path) => !path.startsWith('docs/examples/'));
    expect(pages.filter((path) => !existsSync(join(SITE, path.replace(/\.md$/, '.html'))))).toEqual([]);
  });

  test('builds the API of every entry point', () => {
    const missing = [...entryPoints().keys()].filter(
      (name) => !existsSync(join(SITE, 'api', `${name}.html`)) && !existsSync(join(SITE, 'api', `${name}-1.html`)),
    );
    expect(missing).toEqual([]);
  });

  test('shows diagrams inside the page', () => {
    expect(readFileSync(join(SITE, 'docs/explanation/life-of-a-step.html'), 'utf8')).toContain(
      'data-phase="AUTHORIZE"',
    );
  });
});
