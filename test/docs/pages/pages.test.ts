// What holds for every tutorial and guide without following it, and the runner that follows them.

import { describe, expect, test } from '@jest/globals';
import { tempFolder } from '../../fixtures/temp-folder.js';
import { textOf } from '../../sources.js';
import { tableOf } from '../tables.js';
import { blocksOf } from './blocks.js';
import { followPage } from './follow-page.js';
import { GUIDES, PAGES, SOURCE_GUIDES, TUTORIALS } from './pages.js';

describe('pages', () => {
  test.each(PAGES)('%s has commands, and no block that nothing executes', (path) => {
    const consoles = blocksOf(textOf(path)).filter((block) => block.kind === 'console');
    expect(consoles.length).toBeGreaterThan(0);
  });

  test('every row of the tables on what to do leads to a guide, and to every guide one row', () => {
    const linkedFrom = (page: string): readonly string[] => {
      const [, table = ''] = /\| I want to \| .* \|\n\|---\|---\|\n((?:\|.*\n)+)/.exec(textOf(page)) ?? [];
      const rows = table.trimEnd().split('\n');
      return rows.map((row) => /^\| \[[^\]]+\]\(((?:how-to\/|#)[^)]+)\)/.exec(row)?.[1] ?? row);
    };
    const guides = linkedFrom('docs/contributing.md').filter((path) => !path.startsWith('#'));
    const inDocs = (path: string): string => `docs/${path}`;
    expect(linkedFrom('docs/README.md').map(inDocs).sort()).toEqual([...GUIDES].sort());
    expect(guides.map(inDocs).sort()).toEqual([...SOURCE_GUIDES].sort());
  });

  test('the list of first hours leads to tutorials, and names suites that follow them with the installed package', () => {
    const rows = tableOf('docs/README.md', 'first-hours');
    const pages = rows.map(([, page = '']) => `docs/${/\]\((.+)\)/.exec(page)?.[1] ?? page}`);
    expect(pages.length).toBeGreaterThan(0);
    expect(TUTORIALS).toEqual(expect.arrayContaining(pages));
    const suites = rows.flatMap(([, , suite = '']) => suite.match(/test\/[\w./-]+/g) ?? []);
    expect(suites.length).toBeGreaterThanOrEqual(rows.length);
    for (const suite of suites) expect(textOf(suite)).toMatch(/installPackage|installedPackage/);
  });
});

describe('the runner', () => {
  const fence = (info: string, ...lines: readonly string[]): string => ['```' + info, ...lines, '```', ''].join('\n');
  const follow = (page: string): Promise<void> =>
    followPage(page, { folder: tempFolder('page'), packageFolder: tempFolder('page') });

  test.each([
    ['prints what it shows', fence('console', '$ echo one', 'one')],
    [
      'runs in one shell',
      fence('console', '$ mkdir a && cd a', '$ WORD=two', '', '$ basename $PWD; echo $WORD', 'a', 'two'),
    ],
    ['writes files', fence('text name=a/b.txt', 'one', 'two') + fence('console', '$ cat a/b.txt', 'one', 'two')],
    [
      'edits files',
      fence('text name=a', 'one', 'two', 'three') +
        fence('diff name=a', ' one', '-two', '+2', ' three') +
        fence('console', '$ cat a', 'one', '2', 'three'),
    ],
    ['shows the exit code of what fails', fence('console', '$ false', '$ echo $?', '1')],
    ['leaves lines out', fence('console', '$ seq 9', '1', '...', '9')],
    ['continues a command', fence('console', '$ echo one \\', '> two', 'one two')],
    [
      'ends what runs in another terminal',
      fence('console terminal=b', '$ sh -c "trap \'exit 0\' INT; echo up; while :; do :; done"', 'up') +
        fence('console terminal=b', '^C'),
    ],
    [
      'repeats a value',
      fence(
        'console',
        `$ R=run_$(printf %021d 7); echo $R`,
        `run_${'A'.repeat(21)}`,
        '$ echo $R',
        `run_${'A'.repeat(21)}`,
      ),
    ],
    [
      'gives commands the value of a stand-in',
      fence(
        'console',
        '$ printf "run_%021d\\n" 8',
        `run_${'A'.repeat(21)}`,
        `$ echo run_${'A'.repeat(21)}.1 | tail -c 4`,
        '8.1',
      ),
    ],
  ])('follows a page that %s', async (_what, page) => {
    await expect(follow(page)).resolves.toBeUndefined();
  });

  test.each([
    ['shows other output', fence('console', '$ echo one', 'two'), /should print\ntwo\nand printed\none/],
    ['shows less output', fence('console', '$ seq 2', '1'), /should print/],
    ['hides that a command fails', fence('console', '$ false'), /ended with 1, and no `echo \$\?`/],
    ['edits lines that are not there', fence('text name=a', 'one') + fence('diff name=a', '-two', '+2'), /0 times/],
    [
      'shows two values as one',
      fence('console', '$ printf "run_%021d\\n" 7 8', `run_${'A'.repeat(21)}`, `run_${'A'.repeat(21)}`),
      /should print/,
    ],
    [
      'shows one value as two',
      fence('console', '$ printf "run_%021d\\n" 7 7', `run_${'A'.repeat(21)}`, `run_${'B'.repeat(21)}`),
      /should print/,
    ],
    ['has a block that nothing executes', fence('js', 'one();'), /line 1: a block is a console or has a name/],
  ])('refuses a page that %s', async (_what, page, message) => {
    await expect(follow(page)).rejects.toThrow(message);
  });

  test('writes the outputs of a run into a page', async () => {
    const page = fence('console', '$ printf "run_%021d\\n" 7', '', '$ echo @run1', '?');
    let written = '';
    const write = (text: string): void => void (written = text);
    await followPage(page, { folder: tempFolder('page'), packageFolder: tempFolder('page'), write });
    const id = `run_${'7'.padStart(21, '0')}`;
    expect(written).toBe(fence('console', '$ printf "run_%021d\\n" 7', id, '', `$ echo ${id}`, id));
  });
});
