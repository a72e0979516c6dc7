// The keys of the page. In a field for text they are letters.

import { TABS } from '../store/address.js';
import type { Store } from '../store/store.js';
import { overlay, toggle } from './context.js';
import { zoom } from './chart-zoom.js';

export const KEYS: readonly (readonly [keys: string, does: string])[] = [
  ['/', 'filter the events'],
  ['j k', 'next and previous row of the list'],
  ['← →', 'one event back and on'],
  ['PgUp PgDn', 'a hundred rows back and on'],
  ['Home', 'the first event'],
  ['End l', 'live'],
  ['1 2 3 4 5', 'run machine, step machine, agent’s view, waterfall, session'],
  ['[ ]', 'previous and next step'],
  ['c', 'choose a run or step to compare with'],
  ['+ − 0', 'chart larger, smaller, fitted'],
  ['↑ ↓ ← →', 'in the run tree: move, close, open; among the steps: move'],
  ['Esc', 'close, clear the filter, end a comparison'],
  ['?', 'this list'],
];

export function onKey(store: Store, event: KeyboardEvent): void {
  const { target } = event;
  // What a control has taken for itself may have moved it away already.
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (target instanceof Element && target.closest('input[type="search"], select, textarea') !== null) {
    if (event.key === 'Escape') leave(store, target);
    return;
  }
  const hasOwn = target instanceof Element && target.closest('[role="tree"], [role="toolbar"]') !== null;
  if (hasOwn && /^Arrow|^Home$|^End$|^Enter$| /.test(event.key)) return;
  if (act(store, event.key)) event.preventDefault();
}

function leave(store: Store, target: Element): void {
  store.change({ filter: '' });
  if (target instanceof HTMLElement) target.blur();
}

/** @returns whether the key means something */
function act(store: Store, key: string): boolean {
  const tab = TABS[Number(key) - 1];
  if (/^[1-5]$/.test(key) && tab !== undefined) return done(() => store.openTab(tab));
  const rows: Readonly<Record<string, number>> = {
    j: 1,
    k: -1,
    ArrowDown: 1,
    ArrowUp: -1,
    ArrowRight: 1,
    ArrowLeft: -1,
    PageDown: 100,
    PageUp: -100,
  };
  const by = rows[key];
  if (by !== undefined) return done(() => moveBy(store, by));
  switch (key) {
    case '/':
      return done(() => document.querySelector<HTMLInputElement>('input[type="search"]')?.focus());
    case 'Home':
      return done(() => store.goTo({ at: store.rows.first, moves: 0 }));
    case 'End':
    case 'l':
      return done(() => store.goTo(null));
    case '[':
    case ']':
      return done(() => store.selectStep(Math.max(1, store.stepShown() + (key === '[' ? -1 : 1))));
    case 'c':
      return done(() => (store.choosing.value = !store.choosing.value));
    case '+':
    case '=':
    case '-':
    case '0':
      return done(() => zoom(key));
    case '?':
      return done(() => toggle('keys'));
    case 'Escape':
      return done(() => escape(store));
    default:
      return false;
  }
}

function done(does: () => unknown): true {
  does();
  return true;
}

/** One thing at a time, what lies on top first. */
function escape(store: Store): void {
  if (overlay.value !== 'none') overlay.value = 'none';
  else if (store.choosing.value) store.choosing.value = false;
  else if (store.view.value.cmp !== null) store.change({ cmp: null });
  else store.change({ filter: '', problems: false });
}

/** Rows of the list that is shown; from the head, back from the last one. */
export function moveBy(store: Store, by: number): void {
  const list = store.lists.list.value;
  const now = list.placeOf(store.cursor.value);
  // Before the first row of the list nothing lies further back.
  if (now < 0 && by < 0) return;
  const place = Math.max(0, Math.min(list.length - 1, now + by));
  const item = list.get(place);
  if (item === null) return;
  if (now + by >= list.length && store.isLive.value) return;
  store.lookAt(item);
}
