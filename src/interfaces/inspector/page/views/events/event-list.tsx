// The events, one line each: of the selected run with the moves of its machines, or of the whole log.

import { useStore } from '../common/context.js';
import { Checkbox, formatCount, formatClock, VisibleText } from '../common/text.js';
import { VirtualList } from '../common/virtual-list.js';
import { ROW_HEIGHT } from '../../store/rows/row-window.js';
import type { ListItem } from '../../store/item-lists.js';
import { shortId } from '../../store/rows/runs.js';
import type { Store } from '../../store/store.js';
import { hueOf, isProblem, toneAt } from '../../store/rows/tones.js';

export function EventList() {
  const store = useStore();
  const list = store.lists.list.value;
  const cursor = store.cursor.value;
  const place = list.placeOf(cursor);
  return (
    <div class="events" data-revision={store.revision.value}>
      <EventListHead shown={list.length} />
      {list.length === 0 ? (
        <NoMatchNotice />
      ) : (
        <VirtualList
          count={list.length}
          row={ROW_HEIGHT}
          place={place}
          draw={(at, slot) => <Row item={list.get(at)} place={at} now={place} key={slot} />}
          attributes={{
            role: 'grid',
            'aria-label': 'Events',
            'aria-rowcount': list.length,
            'aria-activedescendant': place < 0 ? undefined : `row-${place}`,
          }}
        />
      )}
    </div>
  );
}

function EventListHead({ shown }: { readonly shown: number }) {
  const store = useStore();
  const { filter, own, problems } = store.view.value;
  return (
    <header class="list-head">
      <h2>
        {store.comparison.value === null ? 'Events' : 'Compared'} <small>{formatCount(shown)}</small>
      </h2>
      <input
        type="search"
        placeholder="Filter  ( / )"
        aria-label="Filter events"
        value={filter}
        onInput={(event) => store.change({ filter: event.currentTarget.value })}
        spellcheck={false}
      />
      <Checkbox label="this run" checked={own} onChange={(is) => store.change({ own: is })} />
      <Checkbox label="problems" checked={problems} onChange={(is) => store.change({ problems: is })} />
    </header>
  );
}

function NoMatchNotice() {
  const store = useStore();
  const { filter, problems } = store.view.value;
  return (
    <div class="note">
      No event matches{filter === '' ? '' : ` “${filter}”`}.
      {(filter !== '' || problems) && (
        <button type="button" onClick={() => store.change({ filter: '', problems: false })}>
          Clear the filter
        </button>
      )}
    </div>
  );
}

interface RowProps {
  readonly item: ListItem | null;
  readonly place: number;
  readonly now: number;
}

function Row({ item, place, now }: RowProps) {
  const store = useStore();
  if (item === null) return null;
  const broken = store.proof.state.value?.broken?.at ?? Number.MAX_SAFE_INTEGER;
  const cells = item.move < 0 ? entryCells(store, item) : moveCells(item);
  const classes = [
    'row',
    place === now ? 'selected' : place > now ? 'ahead' : '',
    item.move < 0 ? '' : 'move',
    cells.problem ? 'problem' : '',
    item.side === null ? '' : `side-${item.side}`,
    item.at >= broken ? 'unverified' : '',
  ];
  return (
    <div
      id={`row-${place}`}
      class={classes.join(' ')}
      role="row"
      aria-rowindex={place + 1}
      aria-selected={place === now}
      title={item.at >= broken ? 'not verified' : undefined}
      onClick={() => store.showItem(item)}
    >
      <span role="gridcell" class="number">
        {item.move < 0 ? item.at : '↳'}
      </span>
      <span role="gridcell" class="clock">
        {item.move < 0 ? formatClock(store.rows.time(item.at)) : ''}
      </span>
      <span role="gridcell" class="kind">
        {cells.kind}
      </span>
      <span role="gridcell" class={`what ${cells.hue}`}>
        {cells.what}
      </span>
      <span role="gridcell" class={`end ${cells.hue}`}>
        {cells.end}
      </span>
    </div>
  );
}

interface RowCells {
  readonly kind: string;
  readonly what: preact.ComponentChildren;
  readonly end: preact.ComponentChildren;
  readonly hue: string;
  readonly problem: boolean;
}

const KINDS: Readonly<Record<string, string>> = {
  input: 'input',
  run_created: 'run',
  step_trace: 'trace',
  session_event: 'session',
};

function entryCells(store: Store, item: ListItem): RowCells {
  const { rows } = store;
  const tone = toneAt(rows.tone(item.at));
  const label = rows.labels.at(rows.label(item.at));
  const step = rows.step(item.at);
  const isOutcome = step > 0;
  // An input of another run that moved this one is listed with that run's name.
  const own = (store.view.value.own || store.comparison.value !== null) && item.run?.key === rows.run(item.at);
  const type = rows.types.at(rows.type(item.at));
  const kind = KINDS[type] ?? (label.startsWith('authz') ? 'authz' : 'audit');
  const what = (
    <>
      <VisibleText text={isOutcome ? 'step' : label} />
      {step > 0 && <small>{` #${step}`}</small>}
    </>
  );
  const id = own ? '' : shortId(rows.ids.at(rows.run(item.at)));
  const end = isOutcome ? <b>{label}</b> : id === '' ? null : <small>{id}</small>;
  return { kind, what, end, hue: tone === 'plain' ? '' : `h-${hueOf(tone)}`, problem: isProblem(tone) };
}

/** A move is named after its event; without one, after its source and target states. */
function moveCells({ course, move }: ListItem): RowCells {
  const [, step = 0, edge = -1] = course?.moves[move] ?? [];
  const [source = '', event = ''] = (course?.edges[edge] ?? '').split('|');
  const to = course?.states[course.moves[move]?.[3] ?? -1] ?? '';
  const name = event === '' || event === 'always' ? phaseName(source) : event;
  const what = (
    <>
      {name}
      <small>{` → ${phaseName(to)}`}</small>
    </>
  );
  return { kind: step > 0 ? 'step' : 'run', what, end: null, hue: '', problem: false };
}

/** The short name of a phase; the nine short names differ. */
const phaseName = (path: string): string => path.slice(path.lastIndexOf('.') + 1).replace(/^VALIDATE_/, '');
