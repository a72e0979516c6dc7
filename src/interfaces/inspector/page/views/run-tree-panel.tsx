// The runs, newest root first; only those that exist at the cursor.

import { useEffect, useMemo } from 'preact/hooks';
import { openedNodes, openPanel, useStore } from './common/context.js';
import { Icon, ToneIcon } from './common/icons.js';
import { formatCount, VisibleText } from './common/text.js';
import { VirtualList } from './common/virtual-list.js';
import { kindOf, shortId, displayStateOf } from '../store/rows/runs.js';
import { ancestorsOf, treeLines, type TreeLine } from '../store/rows/run-lines.js';

const ROW = 28;

export function RunTreePanel() {
  const store = useStore();
  const { at } = store.cursor.value;
  const selected = store.view.value.run;
  useEffect(() => {
    if (selected !== null) setOpened(ancestorsOf(store.runs, selected).slice(0, -1), true);
  }, [selected, store]);
  const born = store.runs.countUntil(at);
  const lines = useMemo(() => treeLines(store.runs, at, openedNodes.value), [store.runs, born, openedNodes.value]);
  const place = lines.findIndex(({ run }) => run.id === selected);
  const loading = store.rows.first > store.rows.begin;
  return (
    <nav class="tree" aria-label="Runs" data-revision={store.revision.value}>
      <h2>
        Runs <small>{formatCount(store.runs.size)}</small>
        {loading && <small class="loading">reading earlier events…</small>}
        {store.isChoosingComparison.value && <small class="choosing">choose one to compare with</small>}
      </h2>
      <VirtualList
        count={lines.length}
        row={ROW}
        place={place}
        draw={(at) => <RunLine line={lines[at]} key={lines[at]?.run.id} />}
        attributes={{
          role: 'tree',
          'aria-label': 'Run tree',
          'aria-activedescendant': place < 0 ? undefined : `run-${selected ?? ''}`,
        }}
        onKeyDown={(event) => onTreeKey(event, lines, place, (run) => store.select(run))}
      />
    </nav>
  );
}

function setOpened(ids: readonly string[], is: boolean): void {
  const next = new Set(openedNodes.value);
  for (const id of ids) {
    if (is) next.add(id);
    else next.delete(id);
  }
  if (next.size !== openedNodes.value.size) openedNodes.value = next;
}

function RunLine({ line }: { readonly line: TreeLine | undefined }) {
  const store = useStore();
  if (line === undefined) return null;
  const { run, depth } = line;
  const selected = store.view.value.run === run.id;
  const state = displayStateOf(run, store.cursor.value.at);
  const born = store.rows.creations.get(run.key);
  const kind = kindOf(store.rows, run);
  const unlike = store.isChoosingComparison.value && !store.canCompare(run.id);
  const about = born?.request ?? born?.lane ?? born?.case ?? '';
  return (
    <div
      class={`line${selected ? ' selected' : ''}${unlike ? ' unlike' : ''}`}
      id={`run-${run.id}`}
      role="treeitem"
      aria-level={depth + 1}
      aria-selected={selected}
      aria-disabled={unlike ? true : undefined}
      aria-expanded={line.hasChildren ? line.open : undefined}
      style={{ paddingInlineStart: `${8 + depth * 16}px` }}
      title={run.id}
      onClick={() => {
        if (unlike) return;
        store.select(run.id);
        openPanel.value = 'none';
      }}
    >
      <span
        class={line.open ? 'turn open' : 'turn'}
        onClick={(event) => {
          event.stopPropagation();
          setOpened([run.id], !line.open);
        }}
      >
        {line.hasChildren && <Icon name="on" />}
      </span>
      <ToneIcon tone={state ?? 'plain'} />
      <span class="said">{state}</span>
      {born?.executor === 'caller' && state !== 'denied' && <small class="by-caller">by client</small>}
      <b>{kind}</b>
      <code>{shortId(run.id)}</code>
      <span class="about">
        <VisibleText text={about} />
      </span>
    </div>
  );
}

function onTreeKey(
  event: KeyboardEvent,
  lines: readonly TreeLine[],
  place: number,
  select: (run: string) => void,
): void {
  const line = lines[place];
  const to = (next: TreeLine | undefined): void => {
    if (next !== undefined) select(next.run.id);
  };
  if (event.key === 'ArrowDown') to(lines[place + 1]);
  else if (event.key === 'ArrowUp') to(lines[Math.max(0, place - 1)]);
  else if (event.key === 'Home') to(lines[0]);
  else if (event.key === 'End') to(lines.at(-1));
  else if (event.key === 'ArrowRight' && line?.hasChildren === true) {
    if (line.open) to(lines[place + 1]);
    else setOpened([line.run.id], true);
  } else if (event.key === 'ArrowLeft' && line !== undefined) {
    if (line.open) setOpened([line.run.id], false);
    else to(lines.slice(0, place).findLast(({ depth }) => depth < line.depth));
  } else return;
  event.preventDefault();
}
