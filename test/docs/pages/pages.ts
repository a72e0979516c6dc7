// The pages that the runner follows, by the suite that follows them.

import { filesIn } from '../../sources.js';

const pagesIn = (folder: string): readonly string[] =>
  filesIn(folder, /\.md$/).filter((path) => path.split('/').length === folder.split('/').length + 1);

export const TUTORIALS = pagesIn('docs/tutorials');
export const GUIDES = pagesIn('docs/how-to');
/** Guides for those who change the source code: they begin in a checkout. */
export const SOURCE_GUIDES = pagesIn('docs/how-to/source');
export const PAGES = [...TUTORIALS, ...GUIDES, ...SOURCE_GUIDES];
