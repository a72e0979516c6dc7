// The page that says what was run with which client and what it did.

import { writeFileSync } from 'node:fs';
const PAGE = new URL('../../docs/coding-agents-tested.md', import.meta.url);

export const writePage = (results) => writeFileSync(PAGE, pageOf(results));

/** The page for the results of each client: `{ client, version, runs: [{ title, did }] }`. */
const pageOf = (results) =>
  [HEAD, ...results.map(({ client, version, runs }) => `## ${client} ${version}\n\n${tableOf(runs)}\n`)].join('\n');

const tableOf = (runs) =>
  ['| what was tried | what it did |', '|---|---|', ...runs.map(({ title, did }) => `| ${title} | ${did} |`)].join(
    '\n',
  );

const HEAD = `# Coding agents that were tested

\`npm run campaign -- agents\` writes this page. It starts the real program of each client with a scripted model. Loopback is its
only network, and it has an empty home. In the rows that begin with "service", the settings are those of \`turnpike agents
install\`, and a service with the shipped coding policy decides. In the others, the hook command asks a gate of one function
that uses the dialects of this package. Every client did what the left column says; the right column says how.
`;
