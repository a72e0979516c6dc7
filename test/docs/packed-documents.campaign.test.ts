// The documents as users of the package have them: every link leads to a file and a heading of the package.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { tempFolder } from '../fixtures/temp-folder.js';
import { ROOT } from '../sources.js';

interface PackedDocuments {
  readonly packedPaths: () => readonly string[];
  readonly isDocument: (path: string) => boolean;
  readonly rewritten: (path: string, text: string, packed: readonly string[]) => string;
  readonly deadLinks: (documents: ReadonlyMap<string, string>, packed: readonly string[]) => readonly string[];
}
const PROGRAM = 'tools/package/packed-documents.mjs';
const { packedPaths, isDocument, rewritten, deadLinks } = (await import(
  pathToFileURL(join(ROOT, PROGRAM)).href
)) as PackedDocuments;

describe('the links of a package', () => {
  const packed = ['README.md', 'llms.txt', 'docs/one.md', 'docs/folder/two.md'];
  const deadIn = (text: string, one = '# One\n'): readonly string[] =>
    deadLinks(new Map([...Object.entries({ 'README.md': text, 'docs/one.md': one })]), packed);

  test('may lead to files, folders and headings of it, and elsewhere', () => {
    const one = '# One `two`, [three](folder/two.md)\n## Again\n## Again\n```\n# None\n```\n';
    const links = ['docs/one.md', 'docs/folder/', '#start', 'docs/one.md#one-two-three', 'docs/one.md#again-1'];
    const text = ['# Start', ...[...links, 'https://example.com/#x'].map((link) => `[a](${link})`)].join('\n');
    expect(deadIn(text, one)).toEqual([]);
  });

  test.each(['test/a.test.ts', 'docs/none.md', 'docs/none/', '#none', 'docs/one.md#none', '../README.md'])(
    'may not lead to %s',
    (link) => {
      expect(deadIn(`# Start\n[a](${link})\n`)).toEqual([`README.md: ${link}`]);
    },
  );

  test.each([
    '<a href="docs/none.md">a</a>',
    '<img\n  alt="a > b" src="docs/none.md">',
    '<picture><source srcset="docs/one.md 1x, docs/none.md 2x"></picture>',
    '![a](docs/none.md)',
    '[![a](docs/none.md)](docs/one.md)',
  ])('may not lead to what is not there in %s', (text) => {
    expect(deadIn(`${text}\n`)).toEqual(['README.md: docs/none.md']);
    expect(deadIn(`\`\`\`html\n${text}\n\`\`\`\n`)).toEqual([]);
    expect(deadIn(text.replaceAll('none', 'one'))).toEqual([]);
  });

  test('in the code of a sentence do not count', () => {
    expect(deadIn('Write `<a href="docs/none.md">a</a>`.\n')).toEqual([]);
  });

  test('that are dead become their text, and lines of llms.txt are left out', () => {
    const text = 'See [the\n`test`](test/a.test.ts#x), [one](docs/one.md) and [there](https://example.com/).\n';
    expect(rewritten('README.md', text, packed)).toBe(
      'See the\n`test`, [one](docs/one.md) and [there](https://example.com/).\n',
    );
    const list = '- [docs/one.md](docs/one.md): a page\n- [docs/none.md](docs/none.md): none\n';
    expect(rewritten('llms.txt', list, packed)).toBe('- [docs/one.md](docs/one.md): a page\n');
  });

  test.each([
    ['README.md', '[a `b`](docs/decisions/0001-a.md#c)', '[a `b`](docs/README.md#only-in-a-checkout)'],
    ['docs/folder/two.md', '[a](../decisions/)', '[a](../README.md#only-in-a-checkout)'],
    ['docs/one.md', '[a](performance.md) <a href="../CONTRIBUTING.md">b</a>', null],
    ['docs/README.md', '[a](contributing.md)', 'a'],
    ['README.md', '```md\n[a](CONTRIBUTING.md)\n```\n', '```md\n[a](CONTRIBUTING.md)\n```\n'],
  ])('that lead in %s to a page of the checkout lead to what only a checkout has: %s', (path, text, expected) => {
    const all = '[a](README.md#only-in-a-checkout) <a href="README.md#only-in-a-checkout">b</a>';
    expect(rewritten(path, text, packed)).toBe(expected ?? all);
  });

  test('that show pictures of the checkout are left out, with paragraphs that have nothing else', () => {
    const image = '<img\n  src="docs/pictures/a.webp" alt="a > b">';
    const picture = `<picture><source srcset="docs/pictures/b.webp">\n  ${image}\n</picture>`;
    const paragraphs = [
      '# Start',
      `<p align="center">\n${picture}</p>`,
      image,
      '[![a](docs/pictures/a.svg)](docs/one.md) ![b](docs/pictures/b.svg)',
      `Seen in ${image} by day, and [![a](docs/pictures/a.svg)](LICENSE) by night.`,
      '![kept](docs/one.md) <img src="docs/one.md">',
      `\`\`\`html\n${image}\n\`\`\``,
      'The end.\n',
    ];
    const left = [
      '# Start',
      'Seen in  by day, and  by night.',
      '![kept](docs/one.md) <img src="docs/one.md">',
      paragraphs[6],
      'The end.\n',
    ];
    expect(rewritten('README.md', paragraphs.join('\n\n'), packed)).toBe(left.join('\n\n'));
  });
});

describe('an archive that npm packs', () => {
  let checkout = '';
  const before = new Map<string, string>();
  const documentsBelow = (folder: string): ReadonlyMap<string, string> =>
    new Map(
      readdirSync(folder, { recursive: true, encoding: 'utf8' })
        .filter(isDocument)
        .map((path) => [path, readFileSync(join(folder, path), 'utf8')]),
    );

  beforeAll(() => {
    // A copy: in the checkout itself, other tests read the documents.
    checkout = tempFolder('packed-documents');
    for (const path of [...packedPaths(), PROGRAM, 'docs/.npmignore']) {
      if (!path.startsWith('dist/')) cpSync(join(ROOT, path), join(checkout, path), { recursive: true });
    }
    mkdirSync(join(checkout, 'dist'));
    const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
      readonly scripts: Readonly<Record<string, string>>;
    };
    // Without the build.
    const scripts = { ...manifest.scripts, prepare: 'true' };
    writeFileSync(join(checkout, 'package.json'), JSON.stringify({ ...manifest, scripts }));
    for (const [path, text] of documentsBelow(checkout)) before.set(path, text);
    execFileSync('npm', ['pack', '--silent'], { cwd: checkout, stdio: ['ignore', 'pipe', 'pipe'] });
    execFileSync('tar', ['-xzf', 'turnpike-0.1.0.tgz'], { cwd: checkout });
  }, 120_000);
  afterAll(() => rmSync(checkout, { recursive: true, force: true }));

  test('has no dead link, although the documents of a checkout link to what is not packed', () => {
    const folder = join(checkout, 'package');
    const packed = readdirSync(folder, { recursive: true, encoding: 'utf8' });
    const documents = documentsBelow(folder);
    expect(documents.size).toBe(before.size);
    expect(deadLinks(before, packed).length).toBeGreaterThan(100);
    expect(deadLinks(documents, packed)).toEqual([]);
    const relinked = [...documents].filter(([, text]) => text.includes('#only-in-a-checkout'));
    expect(relinked.length).toBeGreaterThan(10);
    expect([...documents.values()].filter((text) => text.includes('docs/pictures/'))).toEqual([]);
  });

  test('leaves the documents of the checkout as they were', () => {
    rmSync(join(checkout, 'package'), { recursive: true });
    expect(documentsBelow(checkout)).toEqual(before);
    expect(existsSync(join(checkout, 'build/package-originals'))).toBe(false);
  });
});
