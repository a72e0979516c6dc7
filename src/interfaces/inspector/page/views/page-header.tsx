// The head of the pages besides the inspector, with links to the other pages.

import { Logo } from './common/icons.js';
import { SessionMenu } from './session-menu.js';

interface PageHeaderProps {
  readonly title: string;
  /** The page besides this one and the inspector. */
  readonly other: { readonly title: string; readonly path: string };
}

export const PageHeader = ({ title, other }: PageHeaderProps) => (
  <header class="top">
    <Logo />
    <h1>{title}</h1>
    <span class="grow" />
    <SessionMenu />
    <a class="plain nav" href={`./${other.path}${location.hash}`}>
      {other.title}
    </a>
    <a class="plain nav" href={`./${location.hash}`}>
      State inspector
    </a>
  </header>
);
