// The view as the part of the address after `#`: everyone who opens the address sees the same.

import { ALL_MOVES, type Moment } from './path.js';

export const TABS = ['run', 'step', 'story', 'time', 'session'] as const;
export type Tab = (typeof TABS)[number];
export type Theme = 'auto' | 'light' | 'dark';

export interface PageView {
  readonly run: string | null;
  readonly step: number;
  readonly tab: Tab;
  /** Null: the view is at the head and follows it. */
  readonly at: Moment | null;
  readonly filter: string;
  readonly own: boolean;
  readonly problems: boolean;
  /** What the view is compared with: a run, or a step of a run. */
  readonly cmp: { readonly run: string; readonly step: number } | null;
  readonly theme: Theme;
}

export const FIRST_VIEW: PageView = {
  run: null,
  step: 0,
  tab: 'run',
  at: null,
  filter: '',
  own: true,
  problems: false,
  cmp: null,
  theme: 'auto',
};

/** The differences from the first view, in a fixed order. */
export function toAddress(view: PageView): string {
  const params = new URLSearchParams();
  if (view.run !== null) params.set('run', view.run);
  if (view.step > 0) params.set('step', String(view.step));
  if (view.tab !== 'run') params.set('tab', view.tab);
  if (view.at !== null) params.set('at', momentText(view.at));
  if (view.filter !== '') params.set('filter', view.filter);
  if (!view.own) params.set('list', 'all');
  if (view.problems) params.set('problems', '1');
  if (view.cmp !== null) params.set('cmp', view.cmp.step > 0 ? `${view.cmp.run}:${view.cmp.step}` : view.cmp.run);
  if (view.theme !== 'auto') params.set('theme', view.theme);
  return params.toString().replaceAll('%3A', ':');
}

/** Parses an address; ignores invalid parts. */
export function parseAddress(address: string): PageView {
  const params = new URLSearchParams(address.replace(/^#/, ''));
  const tab = TABS.find((name) => name === params.get('tab')) ?? 'run';
  const theme = (['light', 'dark'] as const).find((name) => name === params.get('theme')) ?? 'auto';
  return {
    run: params.get('run') ?? null,
    step: parseWholeNumber(params.get('step')) ?? 0,
    tab,
    at: parseMoment(params.get('at')),
    filter: (params.get('filter') ?? '').slice(0, 200),
    own: params.get('list') !== 'all',
    problems: params.get('problems') === '1',
    cmp: parseComparison(params.get('cmp')),
    theme,
  };
}

const parseWholeNumber = (text: string | null): number | null =>
  text !== null && /^\d{1,9}$/.test(text) ? Number(text) : null;

const momentText = ({ at, moves }: Moment): string =>
  moves === ALL_MOVES ? `${at}.all` : moves === 0 ? `${at}` : `${at}.${moves}`;

function parseMoment(text: string | null): Moment | null {
  const [, at = '', moves] = /^(\d{1,9})(?:\.(\d{1,6}|all))?$/.exec(text ?? '') ?? [];
  return at === '' ? null : { at: Number(at), moves: moves === 'all' ? ALL_MOVES : Number(moves ?? 0) };
}

function parseComparison(text: string | null): PageView['cmp'] {
  const [, run = '', step] = /^([\w.-]{1,200})(?::(\d{1,6}))?$/.exec(text ?? '') ?? [];
  return run === '' ? null : { run, step: Number(step ?? 0) };
}

/** Removes the token from a fragment: it must not stay in the address, or in a copy of it. */
export function takeToken(fragment: string): { readonly token: string | null; readonly rest: string } {
  const params = new URLSearchParams(fragment.replace(/^#/, ''));
  const token = params.get('token');
  if (token === null) return { token, rest: fragment.replace(/^#/, '') };
  params.delete('token');
  return { token, rest: params.toString() };
}
