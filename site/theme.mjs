// The theme of the site: addresses of pages as in the repository, a sidebar of parts, and diagrams inside the page.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DefaultTheme, DefaultThemeRenderContext, JSX, PageEvent, StructureRouter } from 'typedoc';
import { API_PART, OPEN_PARTS, parts } from './pages.mjs';

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

/** Adds to the pages what the theme cannot: SVG files inline, so that their colours follow the theme of the site. */
export function completePages(renderer, outputFolder) {
  renderer.hooks.on('head.end', () => JSX.createElement('script', null, JSX.createElement(JSX.Raw, { html: OPENING })));
  renderer.on(PageEvent.END, (page) => {
    page.contents = page.contents
      ?.replace(DIAGRAM, (_image, file) => readFileSync(join(outputFolder, file), 'utf8').trim())
      .replace(CELL, (cell) => cell.replace(CODE, (_code, path) => `<code>${path.replaceAll('/', '/<wbr>')}</code>`));
  });
}
