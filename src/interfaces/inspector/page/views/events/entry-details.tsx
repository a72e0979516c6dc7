// The entry at the cursor: its text, its proof, its content, and the explanation of its decision.

import { nameInLedger } from '../../../../../core/contract/entry-name.js';
import { useStore } from '../common/context.js';
import { ArtifactContent } from './artifact-content.js';
import { JsonView } from '../common/json-view.js';
import { Facts, formatIsoTime, shortenHash, UntrustedText, VisibleText, type Fact } from '../common/text.js';
import { useAnswer } from '../common/use-answer.js';
import { ExplanationView, UntakenTransitions } from './explanation.js';
import { parseJson } from '../../text/json-lines.js';
import { entryLines } from '../../text/text-authors.js';
import { ALL_MOVES } from '../../store/path.js';
import { hueOf, toneAt } from '../../store/rows/tones.js';
import type { ListItem } from '../../store/item-lists.js';
import {
  isProvable,
  provableText,
  type ChangedEntry,
  type InspectedEvent,
  type ProofState,
} from '../../worker/ledger-proof.js';

export function EntryDetails() {
  const store = useStore();
  const list = store.lists.list.value;
  const cursor = store.cursor.value;
  const place = list.placeOf(cursor);
  const item = list.get(place);
  const isExact = item !== null && (cursor.moves === ALL_MOVES || (item.at === cursor.at && item.nth === cursor.moves));
  const exact = isExact ? item : null;
  const at = exact?.at ?? cursor.at;
  const details = useAnswer(store.rows.has(at) ? String(at) : null, () => store.inspectEvent(at));
  if (!store.rows.has(at)) return <div class="details" />;
  return (
    <section class="details" aria-label="Event details" tabIndex={0} data-revision={store.revision.value}>
      <EntryHead at={at} item={exact} />
      {exact !== null && exact.move >= 0 && exact.run !== null && exact.side === null && (
        <UntakenTransitions run={exact.run} step={exact.course?.moves[exact.move]?.[1] ?? 0} />
      )}
      {details.is === 'failed' && <p class="note">This entry could not be read: {details.why}</p>}
      {details.is === 'here' &&
        (details.value === null ? (
          <p class="note">This entry is not available.</p>
        ) : (
          <EntryContents {...details.value} at={at} />
        ))}
    </section>
  );
}

function EntryHead({ at, item }: { readonly at: number; readonly item: ListItem | null }) {
  const store = useStore();
  const { rows } = store;
  const tone = toneAt(rows.tone(at));
  const step = rows.step(at);
  const [, , edgeAt = -1, stateAt = -1] = item?.course?.moves[item.move] ?? [];
  const [edge, to] = [item?.course?.edges[edgeAt] ?? null, item?.course?.states[stateAt] ?? null];
  const run = rows.ids.at(rows.run(at));
  const facts: readonly Fact[] = [
    ['type', rows.types.at(rows.type(at))],
    ['at', formatIsoTime(rows.time(at))],
    [
      'run',
      <>
        <button type="button" class="link" onClick={() => store.select(run)}>
          {run}
        </button>
        {step > 0 && ` step ${step}`}
      </>,
    ],
    ['ledger', <EntryProofState at={at} />],
  ];
  const title = step > 0 ? `step #${step}` : <VisibleText text={rows.labels.at(rows.label(at))} />;
  return (
    <>
      <header>
        <h2>{edge === null ? title : moveLabel(edge, to)}</h2>
        {edge === null && tone !== 'plain' && <span class={`pill h-${hueOf(tone)}`}>{tone}</span>}
        <span class="grow" />
        <small>{edge === null ? nameInLedger(at) : `after ${nameInLedger(at)}`}</small>
      </header>
      <Facts facts={edge === null ? facts : [['edge', edge], ['state', to], ...facts]} />
    </>
  );
}

/** The event of the move; for a transition without an event, its target. */
function moveLabel(edge: string, to: string | null): string {
  const event = edge.split('|')[1] ?? '';
  return event === '' || event === 'always' ? `to ${to ?? ''}` : event;
}

function EntryProofState({ at }: { readonly at: number }) {
  const store = useStore();
  const state = store.proof.state.value;
  const hash = store.rows.row(at)?.hash ?? '';
  const broken = state?.broken?.at ?? null;
  if (state?.broken != null) {
    const isChanged = state.changed.some((one) => one.at === at);
    const why = at === broken || isChanged ? 'its text is not what the ledger recorded' : otherState(state, at);
    return (
      <span>
        <b class="h-failed strong">✕ {at === broken && !isChanged ? state.broken.why : why}</b> {hash}
      </span>
    );
  }
  const verified = state !== null && at < state.verified;
  return (
    <span>
      {verified ? <b class="h-completed strong">✓ verified</b> : 'not verified yet'} {hash}
    </span>
  );
}

/** What is known of an entry of a ledger that is broken elsewhere. */
function otherState(state: ProofState, at: number): string {
  if (state.root === null) return 'cannot be verified';
  if (isProvable(state)) return 'not verified: its hash is under the signed root, but other parts were changed';
  const where =
    state.broken?.at == null
      ? 'the file is not what was signed'
      : `the chain is broken at ${nameInLedger(state.broken.at)}`;
  return at < (state.broken?.at ?? 0) ? `not verified, though unbroken up to here: ${where}` : `not verified: ${where}`;
}

function EntryContents({ details, changed, at }: InspectedEvent & { readonly at: number }) {
  const store = useStore();
  if (changed !== null) return <ChangedText text={details.text} changed={changed} />;
  const label = store.rows.labels.at(store.rows.label(at));
  const decision = label.startsWith('authz');
  const entry = entryOf(details.text);
  return (
    <>
      {decision && <ExplanationView at={at} />}
      {details.artifacts.length > 0 && (
        <div class="artifacts">
          {details.artifacts.map((artifact) => (
            <ArtifactContent at={at} entry={details.text} artifact={artifact} key={artifact.sha256} />
          ))}
        </div>
      )}
      <div class="entry">
        <h3>
          Entry <code title={details.leaf_hash}>{shortenHash(details.leaf_hash)}</code>
        </h3>
        {entry === null ? (
          <UntrustedText text={details.text} whose="unreadable" block />
        ) : (
          <JsonView value={entry.body} author={entryLines(entry.type, entry.body)} />
        )}
      </div>
    </>
  );
}

/** A text that is not what the ledger recorded: nothing is computed from it, and nothing in it is the platform's. */
function ChangedText({ text, changed }: { readonly text: string; readonly changed: ChangedEntry }) {
  const state = useStore().proof.state.value;
  const { recorded, computed } = changed;
  return (
    <div class="entry changed" role="alert">
      <h3 class="h-failed strong">✕ This text is not what the ledger recorded</h3>
      <Facts
        facts={[
          ['recorded hash', recorded === computed ? 'unknown: no later entry of its tree names it' : recorded],
          ['hash of this text', computed],
        ]}
        wide
      />
      {state !== null && <p>{provableText(state)}</p>}
      <UntrustedText text={text} whose="changed" block />
    </div>
  );
}

/** Null for a text that is not an entry. */
export function entryOf(text: string): { readonly type: string; readonly body: unknown } | null {
  const { type, body = null } = (parseJson(text)?.value ?? {}) as { readonly type?: unknown; readonly body?: unknown };
  return typeof type === 'string' && body !== null ? { type, body } : null;
}
