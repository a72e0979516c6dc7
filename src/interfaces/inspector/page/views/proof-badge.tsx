// What this browser has recomputed of the ledger, and what that does not prove.

import type { ComponentChild } from 'preact';
import { nameInLedger } from '../../../../core/contract/entry-name.js';
import type { LedgerInfo } from '../../../../core/contract/inspection/inspection.js';
import { provableText, type ProofState } from '../worker/ledger-proof.js';
import { openPanel, togglePanel, useStore } from './common/context.js';
import { Icon, IconButton } from './common/icons.js';
import { formatCount, shortenHash } from './common/text.js';

export function ProofBadge() {
  const store = useStore();
  const { phase, state, replayed } = store.proof;
  const open = openPanel.value === 'proof';
  const broken = state.value?.broken ?? null;
  return (
    <span class="proof" data-revision={store.revision.value}>
      <button
        type="button"
        class={`badge ${phase.value} ${replayClass(replayed.value)}`}
        aria-expanded={open}
        aria-haspopup="dialog"
        onClick={() => {
          if (broken?.at !== null && broken !== null && !open)
            store.change({ at: { at: broken.at, moves: 0 }, own: false });
          togglePanel('proof');
        }}
      >
        <Icon name={phase.value === 'broken' ? 'close' : phase.value === 'verified' ? 'chain' : 'shield'} />
        <BadgeText state={state.value} />
      </button>
      {open && <ProofPanel />}
    </span>
  );
}

function BadgeText({ state }: { readonly state: ProofState | null }) {
  const store = useStore();
  const last = (state?.verified ?? 0) - 1;
  const fresh = store.rows.end - 1 - last;
  switch (store.proof.phase.value) {
    case 'broken':
      return <b>{brokenTitle(state)}</b>;
    case 'verified':
      return (
        <span>
          <b>Chain verified</b> to {nameInLedger(last)}
          {replayedText(store.proof.replayed.value)}
          {fresh > 0 && ` · ${formatCount(fresh)} new`}
        </span>
      );
    case 'verifying':
      return (
        <span>
          {state === null ? 'Verifying' : `Verifying, ${formatCount(state.verified)} of ${formatCount(store.rows.end)}`}
        </span>
      );
    case 'impossible':
      return <span>Can’t verify here: needs https or loopback</span>;
    case 'failed':
      return <span>Not verified: the entries could not be read</span>;
    default:
      return (
        <span>
          {store.failure.value === null && store.rows.end > store.rows.begin ? 'Not verified' : 'Nothing to verify'} yet
        </span>
      );
  }
}

type Replayed = LedgerInfo['replayed'];

/** Green is only what was verified here and replayed by the program that made the page. */
const replayClass = (replayed: Replayed): string => (replayed == null ? 'hashes' : replayed.verdict);

const replayedText = (replayed: Replayed): string =>
  replayed?.notes.length ? ` · decisions ${replayed.verdict === 'differs' ? 'differ' : 'not checked'}` : '';

/** What a replay has found: the browser itself recomputes no decision. */
function replayNotes(replayed: Replayed): readonly ComponentChild[] {
  if (replayed === null) return ['replaying…'];
  if (replayed === undefined)
    return [
      <>
        not replayed: run <code>turnpike replay</code>
      </>,
    ];
  return replayed.notes.length === 0 ? ['replayed, all as recorded'] : replayed.notes;
}

function ProofPanel() {
  const store = useStore();
  const state = store.proof.state.value;
  const { begin } = store.rows;
  return (
    <div class="popover" role="dialog" aria-label="What was verified">
      <h2>What this browser recomputed</h2>
      {state?.broken != null && (
        <>
          <p class="h-failed strong">{brokenText(state)}</p>
          <p>{provableText(state)}</p>
        </>
      )}
      {state?.root == null || state.verified <= begin ? (
        <p>Nothing{state?.broken == null && ' yet'}.</p>
      ) : (
        <>
          <ul class="checks">
            <li>
              {formatCount(state.verified - begin)} entries: the SHA-256 of each, the place that it names in its run
              tree, and that the list shows what it says
            </li>
            <li>
              the Merkle root (RFC 6962) of entries {nameInLedger(0)} to {nameInLedger(state.verified - 1)}:{' '}
              <code>{shortenHash(state.root)}…</code>
            </li>
            <li class={state.checkpoint?.fits === true ? '' : 'ahead'}>{checkpointSummary(state)}</li>
          </ul>
          <RootHash root={state.root} />
        </>
      )}
      <h2>Decisions</h2>
      <ul>
        {replayNotes(store.proof.replayed.value).map((note) => (
          <li>{note}</li>
        ))}
      </ul>
      <h2>What that does not prove</h2>
      <ul>
        <li>that the ledger was not truncated: compare the root with one that is stored elsewhere</li>
        <li>that its writer recorded the truth, or that the key belongs to the expected owner</li>
        <li>that the times are right</li>
        <li>charts, paths through them, explanations, sessions and responses: the service computes them</li>
        <li>content that was not opened here: it is hashed when it is opened</li>
      </ul>
      <p class="quiet">
        <code>turnpike ledger export FILE</code> writes it into one file, <code>turnpike inspect FILE</code> opens that
        with no service.
      </p>
    </div>
  );
}

function brokenTitle(state: ProofState | null): string {
  if (state?.broken?.at != null) return `Chain broken at ${nameInLedger(state.broken.at)}`;
  if (state?.root === null) return 'Chain broken at its start';
  return state?.checkpoint?.fits === true ? 'File is not intact' : 'Checkpoint does not match';
}

const brokenText = ({ broken }: ProofState): string =>
  broken?.at == null
    ? `${broken?.why ?? ''}.`
    : `Entry ${nameInLedger(broken.at)}: ${broken.why}. Nothing after it is verified.`;

function checkpointSummary({ checkpoint }: ProofState): string {
  if (checkpoint === null) return 'no signed checkpoint: this ledger is unsigned';
  const signed = {
    right: 'its signature is valid',
    wrong: 'its signature is INVALID',
    unknown: 'this browser cannot check Ed25519 signatures',
  };
  const fits = checkpoint.fits ? 'the root matches' : 'its root is not reached yet';
  return `the checkpoint of ${formatCount(checkpoint.size)} entries by ${checkpoint.origin}: ${signed[checkpoint.signature]}, ${fits}`;
}

function RootHash({ root }: { readonly root: string }) {
  return (
    <p class="hash">
      <code>{root}</code>
      <IconButton
        icon="copy"
        label="Copy the root"
        title="Copy the root"
        onClick={() => void navigator.clipboard.writeText(root)}
      />
    </p>
  );
}
