// The order of the pages: the parts of the sidebar, and in each part its pages as a reader needs them. Previous and
// next at the foot of a page follow the same order. A page that is not in this list has no place, and the build fails.

import { PAGES } from './files.mjs';

const below = (folder, ...names) => names.map((name) => `${folder}/${name}.md`);

/** A part may have one group of pages, which has all pages of its folder in the order of their names. */
const PARTS = [
  {
    title: 'Tutorials',
    pages: below(
      'docs/tutorials',
      'service-developer',
      'ai-sdk-tools',
      'write-a-policy',
      'change-a-policy',
      'coding-agent',
      'claude-code',
      'operator',
      'auditor',
    ),
  },
  {
    title: 'How-to guides',
    pages: below(
      'docs/how-to',
      'change-what-agents-may-do',
      'simulate-a-policy',
      'connect-an-agent-over-mcp',
      'serve-over-http',
      'work-through-a-spec',
      'work-through-a-spec-in-a-shell',
      'add-a-tool-and-a-table',
      'add-an-upstream-server',
      'prove-erase-archive',
      'restart-after-a-full-disk',
      'configure-a-service',
      'separate-the-four-parts',
      'back-up-and-restore',
      'move-a-home',
      'inspect-live-runs',
    ),
  },
  {
    title: 'Explanation',
    pages: [
      'README.md',
      ...below('docs/explanation', 'run-tree', 'life-of-a-step', 'ledger-and-proofs', 'trust', 'extending'),
      ...below('docs', 'trust', 'guarantees'),
      'SECURITY.md',
    ],
  },
  {
    title: 'Topics',
    pages: below(
      'docs',
      'command',
      'services',
      'agents',
      'mcp',
      'upstreams',
      'http',
      'authzen',
      'sessions',
      'session-commands',
      'conditions',
      'counters',
      'decision-points',
      'policy-simulation',
      'identity',
      'evidence',
      'inspectors',
      'operating',
      'operating-postgresql',
      'restate',
      'telemetry',
    ),
  },
  {
    title: 'Reference',
    pages: [
      'docs/README.md',
      'docs/glossary.md',
      ...below('docs/reference', 'commands', 'configuration', 'policy-files', 'http-api'),
      ...below('docs', 'errors', 'coding-agents-tested', 'performance'),
    ],
  },
  {
    title: 'Contract',
    pages: below(
      'docs/contract',
      'README',
      'step-lifecycle',
      'field-constraints',
      'interaction-model',
      'session-steps',
      'run-lifecycle',
      'design-card',
      'resolutions',
    ),
  },
  {
    title: 'Contributing',
    pages: [
      'CONTRIBUTING.md',
      ...below('docs', 'contributing', 'architecture'),
      ...below(
        'docs/how-to/source',
        'add-an-action',
        'change-a-check',
        'change-a-message',
        'change-a-machine',
        'use-another-store',
        'write-an-engine',
        'add-a-command',
        'add-a-test',
      ),
      'AGENTS.md',
      'CHANGELOG.md',
    ],
    group: { title: 'Decisions', folder: 'docs/decisions' },
  },
];

/** The part that also has the TypeScript API. */
export const API_PART = 'Reference';
/** The parts of the sidebar that are open on the first visit. */
export const OPEN_PARTS = ['Tutorials', 'How-to guides', 'Explanation'];

/** Titles of pages whose heading is that of the site, or of another page. */
export const TITLES = new Map([
  ['README.md', 'About Turnpike'],
  ['CONTRIBUTING.md', 'Contributing in short'],
]);

/**
 * @param pages - the paths of all pages
 * @returns {{ title: string, paths: string[], group?: { title: string, paths: string[] } }[]} the parts of the sidebar
 * @throws when a page has no place, or a place has no page
 */
export function placePages(pages) {
  const placed = PARTS.map(({ title, pages: paths, group }) => ({
    title,
    paths,
    ...(group && { group: { title: group.title, paths: pages.filter((path) => path.startsWith(`${group.folder}/`)) } }),
  }));
  const places = pathsOf(placed);
  const problems = [
    ...pages.filter((path) => !places.includes(path)).map((path) => `no part lists ${path}`),
    ...places.filter((path) => !pages.includes(path)).map((path) => `there is no page ${path}`),
  ];
  if (problems.length > 0) throw new Error(`tools/site/order.mjs: ${problems.join('; ')}`);
  return placed;
}

const pathsOf = (placed) => placed.flatMap(({ paths, group }) => [...paths, ...(group?.paths ?? [])]);

/** The parts with the pages of this repository. */
export const parts = () => placePages(PAGES);

/** All pages of the parts, in reading order. */
export const readingOrder = () => pathsOf(parts());

/** The title of the part that has a page. */
export const partOf = (page) => parts().find((part) => pathsOf([part]).includes(page))?.title;
