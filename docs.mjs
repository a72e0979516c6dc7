// The documentation as a static site with search: `npm run docs` makes dist/docs. The build fails on a dead link.
//
// Pages are the Markdown of the repository and an API reference that typedoc makes of every entry point. They are
// staged in build/site under their paths in the repository, so that the links between them hold there too.

import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Application } from 'typedoc';
import { build } from 'vitepress';

const ROOT = dirname(fileURLToPath(import.meta.url));
const SITE = join(ROOT, 'build/site');
const OUT = join(ROOT, 'dist/docs');
const PACKAGE = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));

const isFile = (path) => existsSync(path) && statSync(path).isFile();
const filesBelow = (folder, ending) =>
  readdirSync(folder, { recursive: true }).filter((name) => name.endsWith(ending) && isFile(join(folder, name)));

/** The Markdown of the repository, by paths from its root. Pages of npm packages are not ours. */
const PAGES = [
  ...readdirSync(ROOT).filter((name) => name.endsWith('.md')),
  ...filesBelow(join(ROOT, 'docs'), '.md')
    .map((name) => `docs/${name}`)
    .filter((path) => !path.startsWith('docs/examples/')),
].sort();

const stagedPath = (path) => (path === 'README.md' ? 'index.md' : path);

function stagePages() {
  rmSync(SITE, { recursive: true, force: true });
  for (const path of PAGES) put(stagedPath(path), stagedText(path));
}

function put(path, text) {
  mkdirSync(dirname(join(SITE, path)), { recursive: true });
  writeFileSync(join(SITE, path), text);
}

/** The text of a page without its marks for tests, and with links that hold in the site. */
function stagedText(path) {
  const parts = readFileSync(join(ROOT, path), 'utf8').split(/(^```[^]*?^```$)/m);
  return parts.map((part, index) => (index % 2 === 1 ? part : linked(path, part))).join('');
}

const INLINE = /\[([^\]]*)\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?\)/g;
/** `[name]: target` at the end of a page, for links written `[label][name]`. */
const REFERENCE = /^\[([^\]]+)\]: (?!https?:|mailto:|#)([^#\s]+)(#\S*)?$/gm;

const linked = (path, text) =>
  text
    .replace(/^<!--[^]*?-->\n/gm, '')
    .replace(INLINE, (_all, label, to, anchor = '') => {
      const target = targetOf(path, to, anchor);
      return target === null ? label : `[${label}](${target})`;
    })
    .replace(REFERENCE, (_all, name, to, anchor = '') => `[${name}]: ${targetOf(path, to, anchor)}`);

/**
 * Where a link leads in the site.
 *
 * @returns null for a folder, which has no page
 * @throws when the target is not in the repository
 */
function targetOf(from, to, anchor) {
  const target = posix.join(posix.dirname(from), to).replace(/\/$/, '');
  if (PAGES.includes(target)) return `/${stagedPath(target)}${anchor}`;
  if (!existsSync(join(ROOT, target))) throw new Error(`${from}: the link to ${target} is dead`);
  if (!isFile(join(ROOT, target))) return null;
  // A browser shows text; of the ending of a source file it may know nothing.
  put(`public/files/${target}.txt`, readFileSync(join(ROOT, target)));
  return `/files/${target}.txt`;
}

/** The API reference: one page for every entry point in package.json. */
async function stageApi() {
  const names = new Map(
    Object.entries(PACKAGE.exports).flatMap(([path, { types }]) =>
      types === undefined
        ? []
        : [[types.replace('./dist/', '').replace(/\.d\.ts$/, '.ts'), posix.join(PACKAGE.name, path)]],
    ),
  );
  const app = await Application.bootstrapWithPlugins({
    plugin: ['typedoc-plugin-markdown'],
    entryPoints: [...names.keys()],
    tsconfig: 'tsconfig.build.json',
    basePath: ROOT,
    readme: 'none',
    router: 'module',
    outputs: [{ name: 'markdown', path: join(SITE, 'api') }],
    entryFileName: 'index',
    excludePrivate: true,
    excludeInternal: true,
    disableSources: true,
    skipErrorChecking: true,
    hideBreadcrumbs: true,
    hidePageHeader: true,
    useCodeBlocks: true,
    validation: { invalidLink: true, notExported: false, notDocumented: false, rewrittenLink: false },
    logLevel: 'Warn',
  });
  const project = await app.convert();
  if (project === undefined) throw new Error('typedoc could not read the sources');
  for (const module of project.children ?? []) {
    module.name = names.get(`${module.name}.ts`) ?? names.get(`${module.name}/index.ts`) ?? module.name;
  }
  app.validate(project);
  await app.generateOutputs(project);
  if (app.logger.hasErrors()) throw new Error('typedoc found errors');
}

/** Every link of the built pages that leads to no file or no anchor. */
function deadLinks() {
  const pages = new Map(filesBelow(OUT, '.html').map((name) => [name, readFileSync(join(OUT, name), 'utf8')]));
  const anchors = new Map(
    [...pages].map(([name, html]) => [name, new Set([...html.matchAll(/\sid="([^"]+)"/g)].map(([, id]) => id))]),
  );
  return [...pages].flatMap(([page, html]) => {
    const links = [...html.matchAll(/<a\s[^>]*?href="([^"]+)"/g)].map(([, href]) => href.replaceAll('&amp;', '&'));
    return [...new Set(links)].flatMap((href) => (leads(page, href, anchors) ? [] : [`${page}: ${href}`]));
  });
}

function leads(page, href, anchors) {
  if (/^(?:[a-z]+:|\/\/)/.test(href)) return true;
  const [to, anchor = ''] = href.split('#').map(decodeURIComponent);
  const target = to === '' ? page : posix.join(to.startsWith('/') ? '' : posix.dirname(page), to).replace(/^\//, '');
  const file = target === '' || target.endsWith('/') ? `${target}index.html` : target;
  if (!isFile(join(OUT, file))) return false;
  return anchor === '' || anchors.get(file)?.has(anchor) === true;
}

stagePages();
await stageApi();
mkdirSync(join(SITE, '.vitepress'), { recursive: true });
cpSync(join(ROOT, 'vitepress.config.mjs'), join(SITE, '.vitepress/config.mjs'));
await build(SITE, { outDir: OUT });
const dead = deadLinks();
if (dead.length > 0) throw new Error(`dead links:\n${dead.join('\n')}`);
console.log(`docs: ${filesBelow(OUT, '.html').length} pages in dist/docs, no dead link`);
