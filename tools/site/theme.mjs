// The theme of the site: addresses of pages as in the repository, a sidebar of parts, and diagrams inside the page.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DefaultTheme, DefaultThemeRenderContext, JSX, StructureRouter } from '../ci/typedoc.mjs';
import { filesBelow } from './files.mjs';
import { API_PART, OPEN_PARTS, partOf, parts, readingOrder } from './order.mjs';

const API = 'TypeScript API';

/** A page of the repository keeps its path; the TypeScript API is below `api`. */
export class SiteRouter extends StructureRouter {
  getIdealBaseName(reflection) {
    if (reflection.isDocument()) return String(reflection.frontmatter.path).replace(/\.md$/, '');
    return `api/${super.getIdealBaseName(reflection)}`;
  }
}

class SiteContext extends DefaultThemeRenderContext {
  /** Above a page stands its part; above a symbol, the entry point that exports it. */
  breadcrumbs = (reflection) => {
    const entryPoint = reflection.parent?.isProject() === false ? reflection.parent : null;
    const items = reflection.isDocument()
      ? [partOf(reflection.frontmatter.path)]
      : [API, entryPoint && JSX.createElement('a', { href: this.urlTo(entryPoint) }, entryPoint.name)];
    const list = items.filter(Boolean).map((item) => JSX.createElement('li', null, item));
    return JSX.createElement('ul', { class: 'tsd-breadcrumb', 'aria-label': 'Breadcrumb' }, list);
  };
}

/** The default theme with the parts of the site as its sidebar. */
export class SiteTheme extends DefaultTheme {
  ContextClass = SiteContext;

  buildNavigation(project) {
    const documents = documentsOf(project);
    const toLink = (reflection) => ({ text: reflection.name, path: this.router.getFullUrl(reflection) });
    const toLinks = (paths) => paths.map((path) => toLink(documents.get(path)));
    const modules = { text: API, children: (project.children ?? []).map(toLink) };
    return parts().map(({ title, paths, group }) => ({
      text: title,
      children: [
        ...toLinks(paths),
        ...(group ? [{ text: group.title, children: toLinks(group.paths) }] : []),
        ...(title === API_PART ? [modules] : []),
      ],
    }));
  }
}

const documentsOf = (project) => new Map((project.documents ?? []).map((each) => [each.frontmatter.path, each]));

/** On the first visit some parts of the sidebar are open. The key is that of typedoc's own script. */
const OPENING = `for (const part of ${JSON.stringify(OPEN_PARTS)}) {
  try { localStorage['tsd-accordion-' + part] ??= 'true'; } catch { break; }
}`;

/** A path in a cell of a table may break after a slash. */
const CELL = /<td[^>]*>.*?<\/td>/g;
const CODE = /<code>([^<]*)<\/code>/g;
const DIAGRAM = /<img src="(?:\.\.\/)*(media\/[^"]+\.svg)"[^>]*>/g;

/**
 * Gives code in headings to typedoc as text, from which it makes anchors and the list of headings; it omits code.
 *
 * @param parser - the markdown-it parser of typedoc
 */
export function readHeadingCode(parser) {
  parser.core.ruler.push('heading-code', ({ tokens, Token }) => {
    const headings = tokens.filter((_token, index) => tokens[index - 1]?.type === 'heading_open');
    for (const heading of headings) {
      heading.children = heading.children.flatMap((child) => {
        if (child.type !== 'code_inline') return [child];
        const html = (content) => Object.assign(new Token('html_inline', '', 0), { content });
        return [html('<code>'), Object.assign(new Token('text', '', 0), { content: child.content }), html('</code>')];
      });
    }
  });
}

/** What scrolls by itself can be reached with the keyboard, and nothing else of its kind. */
const SCROLLING = `const watch = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
    else target.removeAttribute('tabindex');
  }
});
document.querySelectorAll('.tsd-typography :is(table, p:has(> svg.diagram))').forEach((each) => watch.observe(each));`;

/** Adds the scripts of the site to each page. */
export function addScripts(renderer) {
  const script = (html) => JSX.createElement('script', null, JSX.createElement(JSX.Raw, { html }));
  renderer.hooks.on('head.end', () => script(OPENING));
  renderer.hooks.on('body.end', () => script(SCROLLING));
}

/** Adds links to the previous and the next page, in reading order, at the foot of each page. */
export function addNeighbours(renderer) {
  const order = readingOrder();
  renderer.hooks.on('content.end', (context) => {
    const { model, project } = context.page;
    if (!model.isDocument()) return JSX.createElement(JSX.Fragment, null);
    const documents = documentsOf(project);
    const place = order.indexOf(model.frontmatter.path);
    const toLink = (rel, label, path) => {
      const page = documents.get(path);
      const words = page && [JSX.createElement('span', null, label), page.name];
      return page && JSX.createElement('a', { rel, href: context.urlTo(page) }, words);
    };
    const links = [toLink('prev', 'Previous', order[place - 1]), toLink('next', 'Next', order[place + 1])];
    return JSX.createElement('nav', { class: 'site-neighbours', 'aria-label': 'Reading order' }, links);
  });
}

/**
 * Changes the built pages where the theme cannot: diagrams go into the page, so that the theme colours them, the parts
 * of the page are landmarks, and the corner of a table is no header.
 */
export function completePages(folder) {
  for (const name of filesBelow(folder, '.html')) {
    const file = join(folder, name);
    const html = readFileSync(file, 'utf8');
    const complete = html
      .replace('<div class="col-content">', '<div class="col-content" role="main">')
      .replace('<div class="page-menu">', '<div class="page-menu" role="complementary" aria-label="This page">')
      .replaceAll('<th></th>', '<td></td>')
      .replace(DIAGRAM, (_image, path) => readFileSync(join(folder, path), 'utf8').trim())
      .replace(CELL, (cell) => cell.replace(CODE, (_code, text) => `<code>${text.replaceAll('/', '/<wbr>')}</code>`));
    if (complete !== html) writeFileSync(file, complete);
  }
}
