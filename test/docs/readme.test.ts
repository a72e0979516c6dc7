// The README has no code and no command of its own: each stands in a file or on a page that a suite runs.

import { expect, test } from '@jest/globals';
import { basename } from 'node:path';
import { filesIn, textOf } from '../sources.js';
import { blocksOf } from './pages/blocks.js';
import { GUIDES, TUTORIALS } from './pages/pages.js';

const README = textOf('README.md');
const CAMPAIGNS = filesIn('test/docs', /\.(campaign|nightly)\.test\.ts$/);
const withoutNpx = (command: string): string => command.replace(/^npx /, '');

/** Commands that no tutorial and no guide has as they are: what runs them, and its words for it. */
const RUN_BY: Readonly<Record<string, readonly [file: string, words: string]>> = {
  'npm ci && npm start': ['test/docs/examples.campaign.test.ts', "run('docs/examples/start.mjs'"],
  'npm ci && npm test': ['.ci/run', '\nnpm test -- '],
  'npm run test:campaigns': ['.ci/run', 'npm run test:campaigns'],
  'npm run docs': ['test/docs/site.nightly.test.ts', "'tools/site/build.mjs'"],
  'npm pack': ['test/fixtures/installed-package.ts', "'pack'"],
  'node refund.mjs': ['test/docs/examples.campaign.test.ts', "put('refund.mjs', at)"],
  'turnpike init --template support': ['test/docs/examples.campaign.test.ts', "'init', '--template', 'support'"],
  'turnpike runs resolve': ['test/interfaces/cli/people.campaign.test.ts', "['runs', 'resolve', run"],
  'turnpike serve --demo': ['test/e2e/serve.nightly.test.ts', "'serve', '--demo'"],
};

test('each block of code of the README is a file that a campaign runs', () => {
  const fences = README.match(/^```/gm) ?? [];
  const files = [...README.matchAll(/^<!-- example: (\S+) -->\n```\w*\n/gm)].map(([, file = '']) => file);
  expect(files.length).toBe(fences.length / 2);
  const run = CAMPAIGNS.map(textOf).join('\n');
  expect(files.filter((file) => !run.includes(`${basename(file)}'`))).toEqual([]);
});

test('each command of the README is one of a page that a suite follows, or is run by another suite', () => {
  const commands = new Set(
    [...README.matchAll(/`((?:npx|npm|node|turnpike) [^`]+)`/g)].map(([, command = '']) => withoutNpx(command)),
  );
  const followed = [...TUTORIALS, ...GUIDES].flatMap((page) =>
    blocksOf(textOf(page)).flatMap((block) =>
      block.kind === 'console' ? block.commands.map(({ text }) => withoutNpx(text)) : [],
    ),
  );
  const isFollowed = (command: string): boolean =>
    followed.some((text) => text === command || text.startsWith(`${command} `));
  const alone = [...commands].filter((command) => !isFollowed(command));
  expect(alone.sort()).toEqual(Object.keys(RUN_BY).sort());
  expect(alone.filter((command) => !isRun(command))).toEqual([]);
});

function isRun(command: string): boolean {
  const [file = '', words = ''] = RUN_BY[command] ?? [];
  return textOf(file).includes(words);
}
