// What is looked at, as the part of the address behind `#`: whoever is given the address sees the same.

import { ALL_MOVES, type Moment } from './path.js';

export const TABS = ['run', 'step', 'story', 'time', 'session'] as const;
export type Tab = (typeof TABS)[number];
export type Theme = 'auto' | 'light' | 'dark';

export interface View {
  readonly run: string | null;
  readonly step: number;
  readonly tab: Tab;
  /** Null: at the head, and going with it. */
  readonly at: Moment | null;
  readonly filter: string;
  readonly own: boolean;
  readonly problems: boolean;
  /** What it is compared with: a run, or a step of one. */
  readonly cmp: { readonly run: string; readonly step: number } | null;
  readonly theme: Theme;
}

export const FIRST_VIEW: View = {
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

/** What differs from the first view, in a fixed order. */
export function addressOf(view: View): string {
  const said = new URLSearchParams();
  if (view.run !== null) said.set('run', view.run);
  if (view.step > 0) said.set('step', String(view.step));
  if (view.tab !== 'run') said.set('tab', view.tab);
  if (view.at !== null) said.set('at', momentText(view.at));
  if (view.filter !== '') said.set('filter', view.filter);
  if (!view.own) said.set('list', 'all');
  if (view.problems) said.set('problems', '1');
  if (view.cmp !== null) said.set('cmp', view.cmp.step > 0 ? `${view.cmp.run}:${view.cmp.step}` : view.cmp.run);
  if (view.theme !== 'auto') said.set('theme', view.theme);
  return said.toString().replaceAll('%3A', ':');
}

/** What an address says; what it says wrongly is as if it were not there. */
export function viewOf(address: string): View {
  const said = new URLSearchParams(address.replace(/^#/, ''));
  const tab = TABS.find((name) => name === said.get('tab')) ?? 'run';
  const theme = (['light', 'dark'] as const).find((name) => name === said.get('theme')) ?? 'auto';
  return {
    run: said.get('run') ?? null,
    step: whole(said.get('step')) ?? 0,
    tab,
    at: momentOf(said.get('at')),
    filter: (said.get('filter') ?? '').slice(0, 200),
    own: said.get('list') !== 'all',
    problems: said.get('problems') === '1',
    cmp: compared(said.get('cmp')),
    theme,
  };
}

const whole = (text: string | null): number | null => (text !== null && /^\d{1,9}$/.test(text) ? Number(text) : null);

const momentText = ({ at, moves }: Moment): string =>
  moves === ALL_MOVES ? `${at}.all` : moves === 0 ? `${at}` : `${at}.${moves}`;

function momentOf(text: string | null): Moment | null {
  const [, at = '', moves] = /^(\d{1,9})(?:\.(\d{1,6}|all))?$/.exec(text ?? '') ?? [];
  return at === '' ? null : { at: Number(at), moves: moves === 'all' ? ALL_MOVES : Number(moves ?? 0) };
}

function compared(text: string | null): View['cmp'] {
  const [, run = '', step] = /^([\w.-]{1,200})(?::(\d{1,6}))?$/.exec(text ?? '') ?? [];
  return run === '' ? null : { run, step: Number(step ?? 0) };
}

/** Takes the token out of a fragment: it must not stay in the address, nor in anything that is copied from there. */
export function takeToken(fragment: string): { readonly token: string | null; readonly rest: string } {
  const said = new URLSearchParams(fragment.replace(/^#/, ''));
  const token = said.get('token');
  if (token === null) return { token, rest: fragment.replace(/^#/, '') };
  said.delete('token');
  return { token, rest: said.toString() };
}
