// The documentation as a static site with search: `npm run docs` writes dist/docs.
//
// Pages are a start page, the Markdown of the repository, and the TypeScript API of every entry point of package.json.
// The build fails on a dead link, and on an exported symbol without a comment.

import { readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { Application } from '../ci/typedoc.mjs';
import { undocumented } from './documented.mjs';
import { filesBelow, ROOT } from './files.mjs';
import { deadLinks } from './links.mjs';
import { stagePages } from './pages.mjs';
import { addNeighbours, addScripts, completePages, readHeadingCode, SiteRouter, SiteTheme } from './theme.mjs';

const OUT = join(ROOT, 'dist/docs');
const PACKAGE = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));

/** The source of each entry point, with the name that a consumer imports. */
const ENTRY_POINTS = new Map(
  Object.entries(PACKAGE.exports)
    .filter(([, target]) => target.types !== undefined)
    .map(([path, { types }]) => [
      types.replace('./dist/', '').replace(/\.d\.ts$/, '.ts'),
      posix.join(PACKAGE.name, path),
    ]),
);

const started = performance.now();
const staged = stagePages();
const app = await Application.bootstrap({
  name: 'Turnpike',
  entryPoints: [...ENTRY_POINTS.keys()],
  tsconfig: 'tsconfig.build.json',
  basePath: ROOT,
  readme: staged.start,
  projectDocuments: staged.pages,
  out: OUT,
  customCss: join(ROOT, 'tools/site/site.css'),
  headings: { readme: false, document: false },
  useFirstParagraphOfCommentAsSummary: true,
  markdownItLoader: readHeadingCode,
  searchInComments: true,
  searchInDocuments: true,
  highlightLanguages: [
    'bash',
    'console',
    'css',
    'diff',
    'html',
    'javascript',
    'json',
    'sql',
    'tsx',
    'typescript',
    'yaml',
  ],
  lightHighlightTheme: 'github-light-default',
  darkHighlightTheme: 'github-dark-default',
  ignoredHighlightLanguages: ['cedar'],
  favicon: join(ROOT, 'tools/site/favicon.svg'),
  customFooterHtml: `Turnpike ${PACKAGE.version}, Apache License 2.0`,
  sortEntryPoints: false,
  sort: ['alphabetical'],
  excludePrivate: true,
  excludeInternal: true,
  excludeExternals: true,
  disableSources: true,
  disableGit: true,
  hideGenerator: true,
  validation: { invalidLink: true, notExported: false, notDocumented: false, rewrittenLink: false },
  maxTypeConversionDepth: 4,
  logLevel: 'Warn',
});
app.renderer.defineRouter('site', SiteRouter);
app.renderer.defineTheme('site', SiteTheme);
app.options.setValue('router', 'site');
app.options.setValue('theme', 'site');
addScripts(app.renderer);
addNeighbours(app.renderer);

const project = await app.convert();
if (project === undefined) throw new Error('docs: typedoc could not read the sources');
for (const module of project.children ?? []) {
  module.name = ENTRY_POINTS.get(`${module.name}.ts`) ?? ENTRY_POINTS.get(`${module.name}/index.ts`) ?? module.name;
}
app.validate(project);
await app.generateDocs(project, OUT);
completePages(OUT);
const problems = [
  ...undocumented(project).map((name) => `no comment: ${name}`),
  ...deadLinks(OUT).map((link) => `dead link: ${link}`),
];
if (app.logger.hasErrors() || app.logger.hasWarnings()) problems.push('typedoc found problems, see above');
if (problems.length > 0) {
  console.error(problems.join('\n'));
  process.exitCode = 1;
}
const seconds = ((performance.now() - started) / 1000).toFixed(0);
console.log(`docs: ${filesBelow(OUT, '.html').length} pages in dist/docs in ${seconds} s, ${problems.length} problems`);
