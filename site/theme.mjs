// The theme of the site: addresses of pages as in the repository, a sidebar of parts, and diagrams inside the page.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DefaultTheme, DefaultThemeRenderContext, JSX, StructureRouter } from 'typedoc';
import { API_PART, filesBelow, OPEN_PARTS, parts } from './pages.mjs';

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
      ? [parts().find(({ paths }) => paths.includes(reflection.frontmatter.path))?.title]
      : [API, entryPoint && JSX.createElement('a', { href: this.urlTo(entryPoint) }, entryPoint.name)];
    const list = items.filter(Boolean).map((item) => JSX.createElement('li', null, item));
    return JSX.createElement('ul', { class: 'tsd-breadcrumb', 'aria-label': 'Breadcrumb' }, list);
  };
}

/** The default theme with the parts of the site as its sidebar. */
export class SiteTheme extends DefaultTheme {
  ContextClass = SiteContext;

  buildNavigation(project) {
    const documents = new Map((project.documents ?? []).map((each) => [each.frontmatter.path, each]));
    const toLink = (reflection) => ({ text: reflection.name, path: this.router.getFullUrl(reflection) });
    const modules = (project.children ?? []).map(toLink);
    return parts().map(({ title, paths }) => {
      const pages = paths.map((path) => toLink(documents.get(path)));
      return { text: title, children: title === API_PART ? [...pages, { text: API, children: modules }] : pages };
    });
  }
}

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

/** Adds the script that opens parts of the sidebar. */
export function openParts(renderer) {
  const script = JSX.createElement('script', null, JSX.createElement(JSX.Raw, { html: OPENING }));
  renderer.hooks.on('head.end', () => script);
}

/** Changes the built pages where the theme cannot: diagrams go into the page, so that the theme colours them. */
export function completePages(folder) {
  for (const name of filesBelow(folder, '.html')) {
    const file = join(folder, name);
    const html = readFileSync(file, 'utf8');
    const complete = html
      .replace(DIAGRAM, (_image, path) => readFileSync(join(folder, path), 'utf8').trim())
      .replace(CELL, (cell) => cell.replace(CODE, (_code, text) => `<code>${text.replaceAll('/', '/<wbr>')}</code>`));
    if (complete !== html) writeFileSync(file, complete);
  }
}
