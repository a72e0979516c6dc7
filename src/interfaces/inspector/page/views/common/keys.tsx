// The keyboard shortcuts of the page. In text fields they are ordinary letters.

import { useEffect, useRef } from 'preact/hooks';
import { TABS } from '../../store/address.js';
import type { Store } from '../../store/store.js';
import { openPanel, togglePanel } from './context.js';
import { IconButton } from './icons.js';
import { applyZoomKey } from '../chart/chart.js';

const KEYS: readonly (readonly [keys: string, does: string])[] = [
  ['/', 'filter the events'],
  ['j k', 'next and previous row of the list'],
  ['← →', 'previous and next event'],
  ['PgUp PgDn', 'a hundred rows back and forward'],
  ['Home', 'the first event'],
  ['End l', 'live'],
  ['1 2 3 4 5', 'run machine, step machine, agent’s view, waterfall, session'],
  ['[ ]', 'previous and next step'],
  ['c', 'choose a run of the same kind, or a step, to compare with'],
  ['+ − 0', 'chart larger, smaller, fitted'],
  ['↑ ↓ ← →', 'in the run tree: move, close, open; among the steps: move'],
  ['Esc', 'close, clear the filter, end a comparison'],
  ['?', 'this list'],
];

export function handleKey(store: Store, event: KeyboardEvent): void {
  const { target } = event;
  // A control that handled the key may have removed itself from the page already.
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (target instanceof Element && target.closest('input[type="search"], select, textarea') !== null) {
    if (event.key === 'Escape') leaveField(store, target);
    return;
  }
  const hasOwn = target instanceof Element && target.closest('[role="tree"], [role="toolbar"]') !== null;
  if (hasOwn && /^Arrow|^Home$|^End$|^Enter$| /.test(event.key)) return;
  if (runKey(store, event.key)) event.preventDefault();
}

function leaveField(store: Store, target: Element): void {
  store.change({ filter: '' });
  if (target instanceof HTMLElement) target.blur();
}

/** @returns whether the key is a shortcut */
function runKey(store: Store, key: string): boolean {
  const tab = TABS[Number(key) - 1];
  if (/^[1-5]$/.test(key) && tab !== undefined) return handled(() => store.openTab(tab));
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
  if (by !== undefined) return handled(() => moveCursorBy(store, by));
  switch (key) {
    case '/':
      return handled(() => document.querySelector<HTMLInputElement>('input[type="search"]')?.focus());
    case 'Home':
      return handled(() => store.goTo({ at: store.rows.first, moves: 0 }));
    case 'End':
    case 'l':
      return handled(() => store.goTo(null));
    case '[':
    case ']':
      return handled(() => store.selectStep(Math.max(1, store.stepShown() + (key === '[' ? -1 : 1))));
    case 'c':
      return handled(() => store.toggleComparison());
    case '+':
    case '=':
    case '-':
    case '0':
      return handled(() => applyZoomKey(key));
    case '?':
      return handled(() => togglePanel('keys'));
    case 'Escape':
      return handled(() => closeTopmost(store));
    default:
      return false;
  }
}

function handled(action: () => unknown): true {
  action();
  return true;
}

/** Closes one thing at a time, the topmost first. */
function closeTopmost(store: Store): void {
  if (openPanel.value !== 'none') openPanel.value = 'none';
  else if (store.isChoosingComparison.value) store.isChoosingComparison.value = false;
  else if (store.view.value.cmp !== null) store.change({ cmp: null });
  else store.change({ filter: '', problems: false });
}

/** Moves by rows of the displayed list; at the head, back from the last row. */
export function moveCursorBy(store: Store, by: number): void {
  const list = store.lists.list.value;
  const now = list.placeOf(store.cursor.value);
  // There is nothing before the first row of the list.
  if (now < 0 && by < 0) return;
  const place = Math.max(0, Math.min(list.length - 1, now + by));
  const item = list.get(place);
  if (item === null) return;
  if (now + by >= list.length && store.isLive.value) return;
  store.showItem(item);
}

/** The list of the keys. */
export function KeysHelp() {
  const open = openPanel.value === 'keys';
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (open) dialog.current?.showModal();
    else dialog.current?.close();
  }, [open]);
  return (
    <dialog
      class="keys"
      ref={dialog}
      aria-label="Keys"
      onClose={() => openPanel.value === 'keys' && (openPanel.value = 'none')}
    >
      <header>
        <h2>Keys</h2>
        <IconButton icon="close" label="Close" onClick={() => (openPanel.value = 'none')} />
      </header>
      <dl>
        {KEYS.map(([keys, does]) => (
          <>
            <dt>
              {keys.split(' ').map((key) => (
                <kbd>{key}</kbd>
              ))}
            </dt>
            <dd>{does}</dd>
          </>
        ))}
      </dl>
    </dialog>
  );
}
